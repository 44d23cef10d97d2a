"""Attacks on a server, each stopped: from other sites, without the token, by size and by path."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.support.api_server import Api, serving

from evalstudio.server.policy import ServerPolicy, UnsafeServer, policy_for
from evalstudio.server.sessions import COOKIE, issue

TOKEN = "a-token-nobody-guesses-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def guarded(project: Path) -> AsyncGenerator[Api]:
    """A server that needs a token."""
    async with serving(project, policy=ServerPolicy(token=TOKEN)) as served:
        yield served


def port_of(api: Api) -> int:
    return int(api.url.rpartition(":")[2])


async def raw(api: Api, request: bytes, *, seconds: float = 10) -> bytes:
    """What a socket gets back, whatever it sends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(api))
    try:
        writer.write(request)
        async with asyncio.timeout(seconds):
            return await reader.read()
    finally:
        writer.close()


class TestDnsRebinding:
    async def test_a_page_whose_name_resolves_to_us_reads_nothing(self, api: Api) -> None:
        hosts = ("evil.example", "evil.example:3000", "127.0.0.1.evil.example", "localhost.evil.example")
        for host in (*hosts, "", "10.0.0.1", "localhost@evil.example", "[::2]"):
            answer = await api("GET", "/api/connectors", headers={"Host": host})
            assert answer.status == 403, host
            assert "allowedHosts" in answer.error["message"]

    async def test_our_own_names_are_fine_with_any_port(self, api: Api) -> None:
        for host in ("localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:3000", "localhost."):
            assert (await api("GET", "/api/health", headers={"Host": host})).status == 200, host

    async def test_two_hosts_or_none_are_refused(self, api: Api) -> None:
        twice = (
            b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        )
        assert b" 403 " in (await raw(api, twice)).split(b"\r\n")[0]
        none = b"GET /api/health HTTP/1.0\r\n\r\n"
        assert b" 403 " in (await raw(api, none)).split(b"\r\n")[0]

    async def test_the_web_ui_is_refused_under_a_foreign_name_too(self, api: Api) -> None:
        assert (await api("GET", "/", headers={"Host": "evil.example"})).status == 403


class TestCrossSiteRequests:
    async def test_a_page_of_another_site_changes_nothing(self, api: Api) -> None:
        made = await api.made("/api/personas", {"name": "Ada"})
        where = f"/api/personas/{made['id']}"
        foreign = [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://localhost:8080"},
            {"Origin": api.url.replace("http://", "http://evil.")},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ]
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            for headers in foreign:
                answer = await api(method, where, {"name": "Eve"}, headers=headers)
                assert answer.status == 403, (method, headers)
        assert (await api.found(where))["name"] == "Ada"

    async def test_a_plain_form_cannot_post(self, api: Api) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = await api(
                "POST", "/api/personas", raw=b'{"name": "Eve"}', headers={"Content-Type": kind}
            )
            assert answer.status == 415
        assert (await api.found("/api/personas"))["items"] == []

    async def test_our_own_page_may(self, api: Api) -> None:
        headers = {"Origin": api.url, "Sec-Fetch-Site": "same-origin"}
        assert (await api("POST", "/api/personas", {"name": "Ada"}, headers=headers)).status == 201

    async def test_no_answer_invites_other_sites(self, api: Api) -> None:
        answer = await api("OPTIONS", "/api/personas", headers={"Access-Control-Request-Method": "POST"})
        assert not any(name.lower().startswith("access-control-") for name in answer.headers)
        read = await api("GET", "/api/personas", headers={"Sec-Fetch-Site": "cross-site"})
        assert read.status == 403

    async def test_browsers_are_kept_in_line(self, api: Api) -> None:
        for path in ("/", "/api/health", "/api/nope"):
            headers = (await api("GET", path)).headers
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "script-src 'self'" in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Server" not in headers


class TestTheToken:
    async def test_without_it_nothing_is_told(self, guarded: Api) -> None:
        wrong = [
            {},
            {"Authorization": TOKEN},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": "Bearer é"},
            {"Authorization": "Bearer"},
            {"Cookie": f"{COOKIE}={TOKEN}"},
            {"Cookie": f"{COOKIE}=9999999999.00"},
            {"Cookie": f"{COOKIE}=x.y"},
            {"Cookie": f"{COOKIE}={issue('another-token-nobody-guesses')}"},
            {"Cookie": f"{COOKIE}={issue(TOKEN, now=0)}"},
        ]
        for headers in wrong:
            for path in ("/api/connectors", "/api/runs/x", "/api/events", "/api/nothing-here"):
                answer = await guarded("GET", path, headers=headers)
                assert answer.status in (401, 429), headers
                assert TOKEN not in answer.text

    async def test_with_it_everything_works(self, guarded: Api) -> None:
        assert (await guarded("GET", "/api/connectors", headers=BEARER)).status == 200

    async def test_an_expired_or_altered_cookie_is_worth_nothing(self, guarded: Api) -> None:
        expires, _, signature = issue(TOKEN).partition(".")
        later = f"{int(expires) + 1000}.{signature}"
        answer = await guarded("GET", "/api/personas", headers={"Cookie": f"{COOKIE}={later}"})
        assert answer.status == 401

    async def test_health_and_readiness_need_none_and_tell_nothing(self, guarded: Api) -> None:
        assert (await guarded("GET", "/api/health")).json == {"status": "ok"}
        assert (await guarded("GET", "/api/ready")).json == {"status": "ready"}
        assert (await guarded("GET", "/api/openapi.json")).status == 401

    async def test_logging_in_gives_a_cookie_no_script_and_no_other_site_can_use(self, guarded: Api) -> None:
        answer = await guarded("POST", "/api/session", {"token": TOKEN})
        assert answer.json == {"required": True, "authenticated": True}
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        value = {"Cookie": cookie.partition(";")[0]}
        assert (await guarded("GET", "/api/personas", headers=value)).status == 200
        assert (await guarded("GET", "/api/session", headers=value)).json["authenticated"] is True
        assert (await guarded("GET", "/api/session")).json == {"required": True, "authenticated": False}
        forged = {**value, "Origin": "https://evil.example"}
        assert (await guarded("POST", "/api/personas", {"name": "x"}, headers=forged)).status == 403

    async def test_guessing_is_slowed_down(self, guarded: Api) -> None:
        statuses = [
            (await guarded("POST", "/api/session", {"token": f"guess number {number}"})).status
            for number in range(15)
        ]
        assert statuses[0] == 401
        assert statuses[-1] == 429
        blocked = await guarded("POST", "/api/session", {"token": TOKEN})
        assert blocked.status == 429
        assert int(blocked.headers["Retry-After"]) > 0
        bearer = await guarded("GET", "/api/personas", headers={"Authorization": "Bearer guess"})
        assert bearer.status == 429
        # The right token is not told apart from a wrong one; whoever has logged in before is not kept out.
        assert (await guarded("GET", "/api/personas", headers=BEARER)).status == 429
        session = {"Cookie": f"{COOKIE}={issue(TOKEN)}"}
        assert (await guarded("GET", "/api/personas", headers=session)).status == 200


class TestListening:
    def test_other_machines_need_a_token(self) -> None:
        with pytest.raises(UnsafeServer, match="needs a token"):
            policy_for("0.0.0.0", None)
        with pytest.raises(UnsafeServer, match="needs a token"):
            policy_for("192.168.1.4", None)
        with pytest.raises(UnsafeServer, match="too short"):
            policy_for("0.0.0.0", "short")

    def test_a_server_for_others_is_called_by_address_or_by_a_listed_name(self) -> None:
        policy = policy_for("0.0.0.0", TOKEN, ["evals.example.com"])
        assert policy.allows_host("192.168.1.4:3000")
        assert policy.allows_host("evals.example.com")
        assert policy.allows_host("[fe80::1]:3000")
        assert not policy.allows_host("evil.example")
        assert not policy.allows_host("")

    def test_a_local_server_needs_none(self) -> None:
        for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
            assert policy_for(host, None).token is None


class TestSizes:
    async def test_an_oversized_body_is_refused_before_it_is_read(self, api: Api) -> None:
        head = (
            b"POST /api/personas HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\nConnection: close\r\n\r\n"
        )
        assert b" 413 " in (await raw(api, head)).split(b"\r\n")[0]

    async def test_a_body_that_does_not_say_its_size_is_cut_off(self, project: Path) -> None:
        async def endless() -> AsyncGenerator[bytes]:
            for _ in range(1000):
                yield b"x" * 1000

        async with serving(project, policy=ServerPolicy(largest_body=100_000)) as api:
            kind = {"Content-Type": "application/json"}
            answer = await api("POST", "/api/personas", raw=endless(), headers=kind)
            assert answer.status == 413
            assert answer.error["code"] == "too_large"
            assert (await api("GET", "/api/health")).status == 200

    async def test_large_headers_are_refused(self, api: Api) -> None:
        answer = await api(
            "GET", "/api/health", headers={"X-Big": "x" * 7000, **{f"X-{n}": "y" * 6000 for n in range(5)}}
        )
        assert answer.status == 431
        many = await api("GET", "/api/health", headers={f"X-{n}": "y" for n in range(150)})
        assert many.status == 431

    async def test_headers_that_never_end_are_cut_off(self, api: Api) -> None:
        lines = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 1000) for number in range(500))
        try:
            answer = await raw(api, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n" + lines)
            assert b" 431 " in answer.split(b"\r\n")[0]
        except ConnectionResetError:
            pass  # cut off so soon that the answer did not get through
        assert (await api("GET", "/api/health")).status == 200

    async def test_nested_json_cannot_exhaust_the_stack(self, api: Api) -> None:
        deep = b'{"name":"x","description":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
        answer = await api("POST", "/api/personas", raw=deep, headers={"Content-Type": "application/json"})
        assert answer.status in (400, 422)


class TestStaticFiles:
    PATHS = (
        "/../policy.py",
        "/..%2fpolicy.py",
        "/%2e%2e/%2e%2e/policy.py",
        "/....//policy.py",
        "/assets/..%5c..%5cpolicy.py",
        "/%00",
        "//etc/passwd",
        "/assets/../../../../../../etc/passwd",
        "/static/%c0%ae%c0%ae/etc/passwd.txt",
    )

    async def test_a_path_cannot_leave_the_folder(self, api: Api) -> None:
        for path in self.PATHS:
            request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            answer = await raw(api, request.encode())
            assert b"root:" not in answer, path
            assert b"ServerPolicy" not in answer, path
            assert answer.split(b" ")[1] in (b"200", b"404", b"400"), path

    async def test_a_friendly_page_says_when_the_ui_is_not_built_or_the_ui_is_served(self, api: Api) -> None:
        answer = await api("GET", "/executions/42")
        assert answer.status == 200
        assert "text/html" in answer.headers["Content-Type"]
        assert (await api("GET", "/missing.js")).status == 404


class TestWhatIsLogged:
    async def test_secrets_do_not_reach_the_access_log(
        self, guarded: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "evalstudio.access"):
            await guarded(
                "GET",
                "/api/personas?token=hidden-one&api_key=hidden-two&text=shown",
                headers={**BEARER, "X-Request-ID": "abc-1", "Cookie": f"{COOKIE}=hidden-three"},
            )
            await guarded("POST", "/api/session", {"token": "hidden-four hidden-four"})
        line = json.loads(caplog.records[0].getMessage())
        assert line["requestId"] == "abc-1"
        assert line["status"] == 200
        assert "text=shown" in line["query"]
        text = "\n".join(record.getMessage() for record in caplog.records)
        assert "hidden" not in text
        assert TOKEN not in text

    async def test_a_request_id_that_could_forge_a_line_is_replaced(self, api: Api) -> None:
        answer = await api("GET", "/api/health", headers={"X-Request-ID": "a b"})
        assert answer.headers["X-Request-ID"] != "a b"
        kept = await api("GET", "/api/health", headers={"X-Request-ID": "trace-7"})
        assert kept.headers["X-Request-ID"] == "trace-7"
