"""Addresses: compared by their server, shown without secrets, local or not."""

from __future__ import annotations

import pytest

from evalstudio.base.addresses import host_of, is_local, named_host, origin, shown_address


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("http://a", "http://a:80"),
        ("https://A.example/x?y", "https://a.example:443"),
        ("http://u:p@a:8080/x", "http://a:8080"),
        ("http://[::1]:9/x", "http://::1:9"),
        (" http://a ", "http://a:80"),
        (None, ""),
        ("${URL}", "${URL}"),
        ("http://[::1", "http://[::1"),
        ("http://a:99999", "http://a:99999"),
    ],
)
def test_an_origin_is_scheme_host_and_port(address: str | None, same: str) -> None:
    assert origin(address) == same


@pytest.mark.parametrize(
    ("address", "whole", "without_path"),
    [
        ("http://a.example/x?key=1#f", "http://a.example/x", "http://a.example"),
        ("https://u:p@a.example:8443/x", "https://a.example:8443/x", "https://a.example:8443"),
        ("${URL}/v1", "${URL}/v1", "${URL}"),
        ("http://u:p%40@a/@b", "http://a/@b", "http://a"),
        ("", "", ""),
    ],
)
def test_what_is_shown_has_no_credentials_and_no_query(address: str, whole: str, without_path: str) -> None:
    assert shown_address(address) == whole
    assert shown_address(address, path=False) == without_path


@pytest.mark.parametrize(
    ("header", "host"),
    [("Localhost:3000", "localhost"), ("[::1]:80", "::1"), ("::1", "::1"), ("a.example.:1", "a.example")],
)
def test_a_host_is_named_without_port_brackets_and_case(header: str, host: str) -> None:
    assert host_of(header) == host


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("Localhost:3000", "localhost"),
        (" a.example\t", "a.example"),
        ("a.example.:1", "a.example"),
        ("a_b-c.d:65535", "a_b-c.d"),
        ("A", "a"),
        ("[::1]:80", "::1"),
        ("[0:0::1]", "::1"),
        ("[FE80::1]", "fe80::1"),
    ],
)
def test_a_host_header_names_a_host_and_perhaps_a_port(header: str, host: str) -> None:
    assert named_host(header) == host


@pytest.mark.parametrize(
    "header",
    [
        "",
        "a:0",
        "a:65536",
        "a:",
        "a:1:2",
        "::1",
        "[::1",
        "[::1]x",
        "[1.2]",
        "[:::]",
        "a b",
        "a/b",
        "u@a",
        "-a",
        # Letters that are the same as k and s when case is ignored, elsewhere than in ASCII.
        "\u212aelvin",
        "\u017f",
        "a" * 300,
    ],
)
def test_anything_else_names_none(header: str) -> None:
    assert named_host(header) is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9:80", "[::1]:3000", "::1"])
def test_only_this_machine_is_local(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "localhost.example", "10.0.0.1", ""])
def test_everything_else_is_not(host: str) -> None:
    assert not is_local(host)
