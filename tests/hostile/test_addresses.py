"""Agents whose address is where a cloud keeps its keys, or no public address at all."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import serving

from evalstudio.base.networks import ForbiddenAddress, no_metadata, public_only
from evalstudio.connectors.http_pool import HttpPool

METADATA = [
    "169.254.169.254",  # AWS, Google, Azure, Oracle, DigitalOcean, Hetzner, OpenStack
    "169.254.170.2",  # ECS
    "169.254.170.23",  # EKS
    "169.254.0.23",  # Tencent
    "169.254.42.42",  # Scaleway
    "168.63.129.16",  # Azure
    "192.0.0.192",  # Oracle
    "100.100.100.200",  # Alibaba
    "192.80.8.124",  # Equinix
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "fe80::a9fe:a9fe",
    "fe80::a9fe:a9fe%eth0",
]
WRITTEN_AS_IPV6 = [
    "::ffff:169.254.169.254",
    "::ffff:168.63.129.16",
    "::169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::168.63.129.16",
    "64:ff9b:1::6464:64c8",
    "2002:a9fe:a9fe::1",
    "2002:a83f:8110::",
    "fe80::5efe:169.254.169.254",
    "2001:db8::200:5efe:168.63.129.16",
]
NOT_PUBLIC = [
    "192.88.99.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.175.48.1",
    "192.0.0.9",
    "192.0.0.170",
    "198.18.0.1",
    "203.0.113.1",
    "100.64.0.1",
    "fec0::1",
    "5f00::1",
    "3fff::1",
    "100::1",
    "100:0:0:1::1",
    "2001:2::1",
    "2001:20::1",
    "2001:db8::1",
    "2620:4f:8000::1",
    "4000::1",
    "64:ff9b:1:808:0:808::",
]


@pytest.mark.parametrize("address", METADATA + WRITTEN_AS_IPV6)
def test_metadata_addresses_are_refused_locally_too(address: str) -> None:
    for check in (
        no_metadata(),
        public_only(),
        public_only(["0.0.0.0/0", "::/0"]),
        no_metadata(["fd00::/8"]),
    ):
        with pytest.raises(ForbiddenAddress, match="metadata"):
            check(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_reserved_ranges_are_not_public_whatever_python_calls_them(address: str) -> None:
    no_metadata()(address)
    with pytest.raises(ForbiddenAddress, match="private or local"):
        public_only()(address)


def test_a_metadata_address_can_be_allowed_by_its_own_name_only() -> None:
    no_metadata(["169.254.169.254"])("169.254.169.254")
    public_only(["169.254.169.254"])("::ffff:169.254.169.254")
    with pytest.raises(ForbiddenAddress):
        no_metadata(["169.254.169.254"])("169.254.170.2")


def test_agents_on_this_machine_and_in_the_house_stay_reachable_locally() -> None:
    for address in ("127.0.0.1", "::1", "10.0.0.5", "192.168.1.2", "172.17.0.1", "fd12::1", "8.8.8.8"):
        no_metadata()(address)


async def test_a_local_server_does_not_fetch_them(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by address, and not by a name that resolves to one."""
    real = socket.getaddrinfo

    def resolved(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return real("169.254.169.254" if name == "metadata.example" else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    async with serving(project) as api:
        for url in ("http://169.254.169.254/latest", "http://metadata.example", "http://[::ffff:a83f:8110]"):
            body = {"name": url, "type": "http", "baseUrl": url, "config": {"responsePath": "message"}}
            made = await api.made("/api/connectors", body)
            tested = (await api("POST", f"/api/connectors/{made['id']}/test")).json
            assert tested["success"] is False
            assert "metadata" in tested["error"], tested


async def test_a_pool_of_a_library_user_refuses_them_by_itself() -> None:
    async with HttpPool() as pool:
        with pytest.raises(OSError, match="metadata"):
            await pool.client().get("http://169.254.169.254/")
