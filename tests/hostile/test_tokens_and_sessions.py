"""Guessing the token, and keeping a session after it was ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.api_server import Api, serving
from tests.support.postgres import PostgresServer
from tests.support.projects import make_project

from evalstudio.project.config import StorageSettings
from evalstudio.server import sessions
from evalstudio.server import throttle as throttling
from evalstudio.server.policy import ServerPolicy, policy_for
from evalstudio.server.sessions import COOKIE, EndedSessions, issue, read_session
from evalstudio.server.throttle import TokenThrottle, TooManyTokens, caller_of
from evalstudio.storage.errors import StorageUnavailable
from evalstudio.storage.opening import open_store

TOKEN = "a-token-nobody-guesses-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def logged_in(api: Api) -> dict[str, str]:
    answer = await api("POST", "/api/session", {"token": TOKEN})
    assert answer.status == 200
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


class TestGuessing:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/api/session"),
            ("GET", "/api/personas"),
            ("GET", "/api/no-such-thing"),
            ("POST", "/api/session"),
        ],
    )
    async def test_the_right_token_is_not_told_from_a_wrong_one_once_there_were_ten(
        self, guarded: Api, method: str, path: str
    ) -> None:
        async def present(token: str) -> int:
            if method == "POST":
                return (await guarded(method, path, {"token": token})).status
            return (await guarded(method, path, headers={"Authorization": f"Bearer {token}"})).status

        first = [await present(f"guess number {number}") for number in range(10)]
        assert 429 not in first
        assert [await present(token) for token in ("another guess", TOKEN, TOKEN)] == [429] * 3
        for other in ("/api/session", "/api/personas", "/api/runs"):
            assert (await guarded("GET", other, headers=BEARER)).status == 429

    async def test_a_session_is_served_while_somebody_guesses_from_the_same_address(
        self, guarded: Api
    ) -> None:
        session = await logged_in(guarded)
        for number in range(15):
            await guarded("GET", "/api/session", headers={"Authorization": f"Bearer {number}"})
        assert (await guarded("GET", "/api/personas", headers=BEARER)).status == 429
        assert (await guarded("GET", "/api/personas", headers=session)).status == 200
        both = {**session, "Authorization": "Bearer one more guess"}
        assert (await guarded("GET", "/api/session", headers=both)).json["authenticated"] is True

    async def test_a_program_with_the_right_token_is_never_slowed_down(self, guarded: Api) -> None:
        assert {(await guarded("GET", "/api/personas", headers=BEARER)).status for _ in range(100)} == {200}

    def test_guessing_from_many_addresses_is_slowed_down_as_one(self) -> None:
        throttle = TokenThrottle()
        throttle.add("10.0.0.1")
        throttle.was_right("10.0.0.1")
        with pytest.raises(TooManyTokens):
            for number in range(10_000):
                throttle.add(f"198.51.{number // 250}.{number % 250}")
        assert throttle.must_wait("203.0.113.9") is not None
        assert throttle.must_wait("10.0.0.1") is None, "who has shown the token waits for no others"
        assert len(throttle._seen) == throttling._WRONG_OF_ALL

    def test_a_network_of_ipv6_addresses_is_one_caller(self) -> None:
        assert (
            caller_of("2001:db8:1:2::1") == caller_of("2001:db8:1:2:ffff::9") != caller_of("2001:db8:1:3::1")
        )
        assert caller_of("::ffff:192.0.2.7") == caller_of("192.0.2.7")
        assert len(caller_of("x" * 30_000)) == 100


class TestLoggingOut:
    async def test_a_copied_cookie_is_worth_nothing_after_logging_out(self, guarded: Api) -> None:
        copied, other = await logged_in(guarded), await logged_in(guarded)
        assert (await guarded("DELETE", "/api/session", headers=copied)).status == 204
        assert (await guarded("GET", "/api/personas", headers=copied)).status == 401
        assert (await guarded("GET", "/api/session", headers=copied)).json["authenticated"] is False
        assert (await guarded("GET", "/api/personas", headers=other)).status == 200

    async def test_it_stays_ended_after_a_restart(self, project: Path) -> None:
        policy = ServerPolicy(token=TOKEN)
        async with serving(project, policy=policy) as api:
            ended, kept = await logged_in(api), await logged_in(api)
            await api("DELETE", "/api/session", headers=ended)
        async with serving(project, policy=policy) as again:
            assert (await again("GET", "/api/personas", headers=ended)).status == 401
            assert (await again("GET", "/api/personas", headers=kept)).status == 200

    async def test_other_servers_of_the_database_know_it(
        self, tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage = {"type": "postgres", "connectionString": postgres.new_database()}
        here = make_project(tmp_path / "here", [], storage=storage)
        there = make_project(tmp_path / "there", [], storage=storage)
        policy = ServerPolicy(token=TOKEN)
        async with serving(here, policy=policy) as one, serving(there, policy=policy) as other:
            ended, kept = await logged_in(one), await logged_in(one)
            assert (await other("GET", "/api/personas", headers=ended)).status == 200
            monkeypatch.setattr(sessions, "_LOOK_SECONDS", 0.0)
            await one("DELETE", "/api/session", headers=ended)
            assert (await other("GET", "/api/personas", headers=ended)).status == 401
            assert (await other("GET", "/api/personas", headers=kept)).status == 200

    async def test_a_logout_holds_here_though_it_could_not_be_stored(
        self, guarded: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def away(*_: object, **__: object) -> None:
            raise StorageUnavailable("The database is away.")

        ended = await logged_in(guarded)
        monkeypatch.setattr(type(guarded.studio.workspace.store), "end_session", away)
        assert (await guarded("DELETE", "/api/session", headers=ended)).status == 204
        monkeypatch.setattr(sessions, "_LOOK_SECONDS", 0.0)
        assert (await guarded("GET", "/api/personas", headers=ended)).status == 401
        assert "other servers forget it" in caplog.text

    async def test_what_is_remembered_is_bounded_and_never_lets_an_ended_session_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "MOST_ENDED", 20)
        opened = [session for _ in range(50) if (session := read_session(TOKEN, issue(TOKEN)))]
        async with await open_store(StorageSettings(), tmp_path) as store:
            ended = EndedSessions(store)
            for session in opened:
                await ended.add(session)
            again = EndedSessions(store)
            await again.refresh()
            assert all(session in ended and session in again for session in opened)
            assert len(await store.read_ended_sessions()) <= 20

    async def test_a_forged_cookie_ends_nothing(self, guarded: Api) -> None:
        session = await logged_in(guarded)
        forged = {"Cookie": session["Cookie"].rpartition(".")[0] + "." + "0" * 64}
        await guarded("DELETE", "/api/session", headers=forged)
        assert (await guarded("GET", "/api/personas", headers=session)).status == 200


class TestBehindAProxy:
    async def cookie_of(self, api: Api, **headers: str) -> str:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await api("POST", "/api/session", {"token": TOKEN}, headers=named)).headers["Set-Cookie"]

    async def test_a_declared_proxy_makes_the_cookie_secure(self, project: Path) -> None:
        policy = policy_for("127.0.0.1", TOKEN, trusted_proxies=["127.0.0.0/8"])
        async with serving(project, policy=policy) as api:
            assert "Secure" in await self.cookie_of(api, X_Forwarded_Proto="https")
            assert "Secure" not in await self.cookie_of(api, X_Forwarded_Proto="http")

    async def test_nobody_else_is_believed(self, guarded: Api) -> None:
        assert "Secure" not in await self.cookie_of(guarded, X_Forwarded_Proto="https")
        for number in range(10):
            headers = {"X-Forwarded-For": f"203.0.113.{number}", "Authorization": "Bearer wrong"}
            assert (await guarded("GET", "/api/personas", headers=headers)).status == 401
        assert (await guarded("GET", "/api/personas", headers=BEARER)).status == 429

    async def test_callers_behind_it_are_counted_one_by_one(self, project: Path) -> None:
        policy = policy_for("127.0.0.1", TOKEN, trusted_proxies=["127.0.0.1"])
        async with serving(project, policy=policy) as api:
            # What the caller itself wrote stands further left and is not believed.
            guess = {"Authorization": "Bearer wrong", "X-Forwarded-For": "10.9.9.9, 203.0.113.1"}
            statuses = [(await api("GET", "/api/personas", headers=guess)).status for _ in range(11)]
            assert statuses[-1] == 429
            other = {**BEARER, "X-Forwarded-For": "203.0.113.1, 203.0.113.2"}
            assert (await api("GET", "/api/personas", headers=other)).status == 200


def test_a_cookie_tells_nothing_of_the_token() -> None:
    cookie = issue(TOKEN)
    assert TOKEN not in cookie
    assert COOKIE == "evalstudio_session"
