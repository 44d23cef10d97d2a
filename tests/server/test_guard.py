"""The decision about a request, by its edges: sizes, origins, tokens, cookies, one guess too many."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstudio.server import throttle as throttling
from evalstudio.server.policy import LARGEST_HEADERS, LARGEST_LOGIN, MOST_HEADERS, ServerPolicy
from evalstudio.server.security import (
    AccessControl,
    Guard,
    Refusal,
    RequestFacts,
    facts_of_request,
    refuse,
    token_of_environment,
    token_of_project,
)
from evalstudio.server.sessions import (
    COOKIE,
    LIFETIME,
    EndedSessions,
    Session,
    issue,
    read_session,
    session_cookie,
)
from evalstudio.server.throttle import TokenThrottle, TooManyTokens, caller_of

TOKEN = "a-token-nobody-guesses-0123456789"
OPEN = ServerPolicy(largest_body=1000)
CLOSED = ServerPolicy(token=TOKEN, largest_body=1000)


def request(
    method: str = "GET", path: str = "/api/runs", host: str = "localhost", **headers: str
) -> RequestFacts:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RequestFacts(method, path, named, 100, 5, (host,))


def status(facts: RequestFacts, policy: ServerPolicy = OPEN) -> int | None:
    refusal = refuse(facts, policy) or AccessControl(policy.token).refuse(facts, "1.1.1.1")
    return refusal.status if refusal else None


def is_session(token: str, cookie: str, now: float | None = None) -> bool:
    return read_session(token, cookie, now) is not None


class TestReadingARequest:
    def scope(self, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
        return {"type": "http", "method": "GET", "path": "/x", "headers": list(headers)}

    def test_names_are_lower_case_and_the_first_of_two_counts(self) -> None:
        facts = facts_of_request(
            self.scope((b"X-A", b"one"), (b"x-a", b"two"), (b"Host", b"h1"), (b"host", b"h2"))
        )
        assert facts.headers == {"x-a": "one", "host": "h1"}
        assert facts.hosts == ("h1", "h2")
        assert (facts.method, facts.path, facts.header_count) == ("GET", "/x", 4)

    def test_cookies_in_several_headers_are_joined(self) -> None:
        facts = facts_of_request(self.scope((b"Cookie", b"a=1"), (b"cookie", b"b=2")))
        assert facts.headers["cookie"] == "a=1; b=2"

    def test_headers_are_measured_with_what_separates_them(self) -> None:
        assert facts_of_request(self.scope((b"Host", b"ab"), (b"X", b""))).header_bytes == 4 + 2 + 4 + 1 + 4

    def test_bytes_that_are_no_text_are_read_all_the_same(self) -> None:
        assert facts_of_request(self.scope((b"x", b"\xff"))).headers == {"x": "\xff"}

    def test_what_was_not_said_is_empty(self) -> None:
        facts = RequestFacts("GET", "/", {})
        assert (facts.header_bytes, facts.header_count, facts.hosts, facts.has_body) == (0, 0, (), False)

    @pytest.mark.parametrize(
        ("path", "is_api"),
        [("/api", True), ("/api/", True), ("/api/runs", True), ("/apis", False), ("/", False)],
    )
    def test_what_belongs_to_the_api(self, path: str, is_api: bool) -> None:
        assert request(path=path).is_api is is_api

    def test_a_body_announces_itself(self) -> None:
        assert not request().has_body
        assert not request(content_length="0").has_body
        assert request(content_length="1").has_body
        assert request(transfer_encoding="chunked").has_body


class TestSizes:
    def test_headers_up_to_the_limit_are_fine(self) -> None:
        largest = replace(request(), header_bytes=LARGEST_HEADERS, header_count=MOST_HEADERS)
        assert status(largest) is None
        assert status(replace(largest, header_bytes=LARGEST_HEADERS + 1)) == 431
        assert status(replace(largest, header_count=MOST_HEADERS + 1)) == 431

    def test_bodies_up_to_the_limit_are_fine(self) -> None:
        sent = {"content_type": "application/json"}
        assert status(request("POST", content_length="1000", **sent)) is None
        assert status(request("POST", content_length="1001", **sent)) == 413
        assert status(request("POST", content_length="9" * 6000, **sent)) == 413
        assert status(request("POST", content_length="-1", **sent)) is None
        assert status(request("POST", content_length="³", **sent)) is None

    def test_a_length_is_read_in_twenty_digits(self) -> None:
        zeros = "0" * 17 + "9999"
        assert status(request("POST", content_length=zeros, content_type="application/json")) is None
        digits = "0" * 16 + "1001"
        assert status(request("POST", content_length=digits, content_type="application/json")) == 413


class TestBodiesAreJson:
    @pytest.mark.parametrize(
        "kind", ["application/json", "Application/JSON ; charset=utf-8", " application/json"]
    )
    def test_json_in_any_writing_is_fine(self, kind: str) -> None:
        assert status(request("POST", content_length="2", content_type=kind)) is None

    def test_other_kinds_and_none_are_refused(self) -> None:
        assert status(request("POST", content_length="2", content_type="text/plain; application/json")) == 415
        assert status(request("POST", content_length="2")) == 415
        assert status(request("POST", transfer_encoding="chunked")) == 415

    def test_without_a_body_or_outside_the_api_the_kind_does_not_matter(self) -> None:
        assert status(request("POST", content_type="text/plain")) is None
        assert status(request("POST", "/page", content_length="2", content_type="text/plain")) is None


class TestHosts:
    def test_exactly_one_known_host_is_needed(self) -> None:
        assert status(request()) is None
        for hosts in ((), ("evil.example",), ("localhost", "localhost"), ("localhost", "evil.example")):
            assert status(replace(request(), hosts=hosts)) == 403, hosts


class TestOrigins:
    @pytest.mark.parametrize(
        ("origin", "host"),
        [
            ("http://localhost", "localhost"),
            ("http://localhost:3000", "localhost:3000"),
            ("http://LOCALHOST:3000", "localhost:3000"),
            ("http://localhost:3000", " LocalHost:3000 "),
            # A browser leaves out the default port, a proxy may write it, and the other way round.
            ("http://localhost", "localhost:80"),
            ("http://localhost:80", "localhost"),
            ("https://localhost", "localhost:443"),
            ("https://localhost:443", "localhost"),
        ],
    )
    def test_our_own_page_is_no_other_site(self, origin: str, host: str) -> None:
        assert status(request("POST", host=host, origin=origin)) is None

    @pytest.mark.parametrize(
        ("origin", "host"),
        [
            ("http://localhost", "localhost:443"),
            ("https://localhost", "localhost:80"),
            ("http://localhost:443", "localhost"),
            ("https://localhost:80", "localhost"),
            ("http://localhost:3000", "localhost"),
            ("http://localhost", "localhost:3000"),
            ("ftp://localhost", "localhost"),
            ("localhost", "localhost"),
            ("://localhost", "localhost"),
            ("http://", "localhost"),
            ("null", "localhost"),
            ("", "localhost"),
            ("http://evil://localhost", "localhost"),
        ],
    )
    def test_every_other_origin_is(self, origin: str, host: str) -> None:
        assert status(request("POST", host=host, origin=origin)) == 403

    @pytest.mark.parametrize(
        ("site", "refused"),
        [("same-origin", None), ("none", None), ("same-site", 403), ("cross-site", 403), ("", 403)],
    )
    def test_what_the_browser_says_of_the_site(self, site: str, refused: int | None) -> None:
        assert status(request("POST", sec_fetch_site=site)) == refused

    def test_either_is_enough_to_refuse(self) -> None:
        own, foreign = "http://localhost", "http://evil.example"
        assert status(request("POST", origin=own, sec_fetch_site="cross-site")) == 403
        assert status(request("POST", origin=foreign, sec_fetch_site="same-origin")) == 403

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
    def test_a_link_from_elsewhere_may_open_a_page_but_not_read_the_api(self, method: str) -> None:
        foreign = {"sec_fetch_site": "cross-site", "origin": "http://evil.example"}
        assert status(request(method, "/runs/1", **foreign)) is None
        assert status(request(method, "/api/runs", **foreign)) == 403
        assert status(request("POST", "/runs/1", **foreign)) == 403


class TestTokens:
    def test_the_api_needs_one_and_pages_do_not(self) -> None:
        assert status(request(), CLOSED) == 401
        assert status(request(path="/"), CLOSED) is None
        assert status(request(), OPEN) is None
        for path in ("/api/health", "/api/ready", "/api/session"):
            assert status(request(path=path), CLOSED) is None
        assert status(request(path="/api/health/x"), CLOSED) == 401

    def test_the_refusal_says_how_to_send_it(self) -> None:
        refusal = AccessControl(TOKEN).refuse(request(), "1.1.1.1")
        assert refusal is not None
        assert refusal.headers == {"WWW-Authenticate": 'Bearer realm="evalstudio"'}
        assert Refusal(400, "no").headers == {}

    def test_it_comes_in_the_header_or_as_a_cookie(self) -> None:
        assert status(request(authorization=f"Bearer {TOKEN}"), CLOSED) is None
        assert status(request(authorization=f"bEARER  {TOKEN} "), CLOSED) is None
        assert status(request(cookie=f"other=1; {COOKIE}={issue(TOKEN)}"), CLOSED) is None
        assert (
            status(request(authorization="Bearer wrong", cookie=f"{COOKIE}={issue(TOKEN)}"), CLOSED) is None
        )

    @pytest.mark.parametrize(
        "header", ["", "Bearer", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN} {TOKEN}", f"Bearer {TOKEN[:-1]}"]
    )
    def test_anything_else_is_none(self, header: str) -> None:
        assert status(request(authorization=header), CLOSED) == 401

    def test_a_token_is_compared_whole(self) -> None:
        access = AccessControl(TOKEN)
        assert access.is_token("1.1.1.1", TOKEN)
        assert not access.is_token("1.1.1.1", TOKEN + "x")
        assert not access.is_token("1.1.1.1", "ü")

    def test_a_broken_cookie_is_none(self) -> None:
        assert session_cookie({"cookie": f"{COOKIE}=x"}) == "x"
        assert session_cookie({"cookie": "other=x"}) is None
        assert session_cookie({}) is None
        assert session_cookie({"cookie": f"{COOKIE}=x; bad\x01name=1"}) in (None, "x")

    def test_the_cookies_name_and_life_are_part_of_the_contract(self) -> None:
        assert COOKIE == "evalstudio_session"
        assert LIFETIME == 7 * 24 * 3600


class TestSessions:
    def test_a_session_ends_after_a_week_to_the_second(self) -> None:
        cookie = issue(TOKEN, now=1000)
        assert is_session(TOKEN, cookie, now=1000 + LIFETIME - 1)
        assert not is_session(TOKEN, cookie, now=1000 + LIFETIME)
        assert cookie.partition(".")[0] == str(1000 + LIFETIME)

    def test_a_session_that_was_issued_now_is_good_now(self) -> None:
        assert is_session(TOKEN, issue(TOKEN))
        assert not is_session(TOKEN, issue(TOKEN, now=0))
        assert not is_session(TOKEN, issue(TOKEN), now=10**11)

    def test_a_new_token_ends_all_sessions(self) -> None:
        assert not is_session("another-token-nobody-guesses", issue(TOKEN))

    def test_the_moment_cannot_be_moved(self) -> None:
        expires, _, signature = issue(TOKEN, now=1000).partition(".")
        assert not is_session(TOKEN, f"{int(expires) + 1}.{signature}", now=1000)
        assert not is_session(TOKEN, f"{expires}.{signature[:-1]}", now=1000)
        assert not is_session(TOKEN, f"{expires}.{signature}.x", now=1000)
        for cookie in ("", ".", "x.y", expires, "9999999999.é"):
            assert is_session(TOKEN, cookie, now=1000) is False, cookie


class Clock:
    """Stands in for the module ``time`` of the guard."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(throttling.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class TestThrottle:
    def test_ten_wrong_tokens_are_allowed_and_not_one_more(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        for _ in range(10):
            assert throttle.must_wait("a") is None
            throttle.add("a")
        assert throttle.must_wait("a") == 60.0
        assert throttle.must_wait("b") is None

    def test_the_wait_ends_a_minute_after_the_tenth_but_last(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        for second in range(10):
            clock.now = 1000.0 + second
            throttle.add("a")
        # The first of the ten was at 1000; while the caller waits, nothing is counted.
        with pytest.raises(TooManyTokens):
            throttle.add("a")
        assert throttle.must_wait("a") == 60.0 - 9
        clock.now = 1059.5
        assert throttle.must_wait("a") == 0.5
        clock.now = 1060.0
        assert throttle.must_wait("a") is None

    def test_what_is_a_minute_old_no_longer_counts(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        for _ in range(10):
            throttle.add("a")
        clock.now = 1059.999
        assert throttle.must_wait("a") is not None
        clock.now = 1060.0
        assert throttle.must_wait("a") is None

    def test_memory_is_bounded_by_callers_and_by_moments(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(throttling, "_MOST_CALLERS", 3)
        throttle = TokenThrottle()
        for _ in range(10):
            for caller in "abc":
                throttle.add(caller)
        assert all(throttle.must_wait(caller) for caller in "abc")
        throttle.add("d")
        assert throttle.must_wait("a") is None
        assert all(throttle.must_wait(caller) for caller in "bc")

    def test_of_one_caller_no_more_moments_are_kept_than_are_needed(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        for _ in range(50):
            throttle.add("a")
            clock.now += 10
        assert len(throttle._seen["a"]) == 11

    def test_ten_thousand_callers_are_remembered(self) -> None:
        assert throttling._MOST_CALLERS == 10_000

    def test_what_is_exactly_a_minute_old_no_longer_counts_beside_newer_ones(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        throttle.add("a")
        clock.now += 60
        for _ in range(9):
            throttle.add("a")
        assert throttle.must_wait("a") is None

    def test_the_answer_says_how_long_to_wait(self) -> None:
        refusal = TooManyTokens(1.5)
        assert (refusal.status, refusal.headers) == (429, {"Retry-After": "2"})

    def test_three_hundred_from_everywhere_are_allowed_in_a_minute(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        for number in range(300):
            assert throttle.must_wait("new") is None
            throttle.add(f"caller {number}")
            clock.now += 0.125
        assert throttle.must_wait("new") == 60.0 - 37.5
        clock.now += 22.375
        assert throttle.must_wait("new") == 0.125
        clock.now += 0.125
        assert throttle.must_wait("new") is None
        throttle.add("new")
        assert throttle.must_wait("another") == 0.125, "the oldest of three hundred counts, and no older one"

    def test_whoever_was_right_waits_for_no_others_and_is_not_counted(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        throttle.add("known")
        throttle.was_right("known")
        for number in range(299):
            throttle.add(f"caller {number}")
        for _ in range(3):
            throttle.add("known")
            throttle.was_right("known")
        throttle.add("known")
        assert throttle.must_wait("new") is None, "neither right tokens nor those of known callers count"
        throttle.add("new")
        assert throttle.must_wait("newer") == 60.0
        assert throttle.must_wait("known") is None

    def test_a_right_token_takes_back_one_count_alone(self, clock: Clock) -> None:
        throttle = TokenThrottle()
        for _ in range(5):
            throttle.add("a")
        throttle.add("a")
        throttle.was_right("a")
        assert len(throttle._seen["a"]) == 5
        throttle.add("b")
        throttle.was_right("b")
        assert "b" not in throttle._seen

    def test_of_known_callers_those_heard_of_last_are_remembered(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(throttling, "_MOST_CALLERS", 3)
        throttle = TokenThrottle()
        for caller in "abcad":
            throttle.add(caller)
            throttle.was_right(caller)
        assert list(throttle._known) == ["c", "a", "d"]

    @pytest.mark.parametrize(
        ("address", "caller"),
        [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::", "2001:db8:1:3::/64"),
            ("fe80::1%eth0", "fe80::/64"),
            ("fe80::1%a%b", "fe80::/64"),
            ("", ""),
            ("x" * 101, "x" * 100),
        ],
    )
    def test_who_is_counted(self, address: str, caller: str) -> None:
        assert caller_of(address) == caller


class Exchange:
    """A guard over an app that answers with a status, and one request after the other."""

    def __init__(self, policy: ServerPolicy, answer: int = 200, ended: EndedSessions | None = None) -> None:
        self.reached = 0
        self.answer = answer
        self.guard = Guard(self._app, policy, AccessControl(policy.token, ended))

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached += 1
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": self.answer, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})

    async def __call__(
        self, method: str = "GET", path: str = "/api/runs", client: Any = ("1.1.1.1", 1), **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(b"host", b"localhost"), *raw],
            "client": client,
        }
        sent: list[Mapping[str, Any]] = []

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        await self.guard(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        named = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], named, json.loads(body)


class TestTheGuard:
    async def test_what_is_allowed_goes_through_and_the_rest_does_not(self) -> None:
        exchange = Exchange(CLOSED)
        assert (await exchange(authorization=f"Bearer {TOKEN}"))[0] == 200
        assert exchange.reached == 1
        code, headers, body = await exchange()
        assert (code, exchange.reached) == (401, 1)
        assert headers["www-authenticate"].startswith("Bearer")
        assert "token is needed" in body["error"]["message"]

    async def test_other_protocols_end_here_and_starting_up_does_not(self) -> None:
        exchange = Exchange(OPEN)
        await exchange.guard({"type": "websocket"}, None, None)  # type: ignore[arg-type]
        assert exchange.reached == 0
        await exchange.guard({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
        assert exchange.reached == 1

    async def test_one_guess_more_than_allowed_must_wait(self, clock: Clock) -> None:
        exchange = Exchange(CLOSED)
        guesses = [(await exchange(authorization="Bearer wrong"))[0] for _ in range(12)]
        assert guesses == [401] * 10 + [429] * 2
        assert (await exchange(authorization="Bearer wrong"))[1]["retry-after"] == "61"
        clock.now += 30.5
        assert (await exchange("POST", "/api/session"))[1]["retry-after"] == "30"
        # The right token is not looked at either; a session is, and so are callers from elsewhere.
        assert (await exchange(authorization=f"Bearer {TOKEN}"))[0] == 429
        session = {"cookie": f"{COOKIE}={issue(TOKEN)}"}
        assert (await exchange(**session))[0] == 200
        assert (await exchange(authorization="Bearer wrong", **session))[0] == 200
        assert (await exchange(authorization="Bearer wrong", client=("2.2.2.2", 1)))[0] == 401

    async def test_the_right_token_is_not_counted(self, clock: Clock) -> None:
        exchange = Exchange(CLOSED)
        for _ in range(9):
            assert (await exchange(authorization="Bearer wrong"))[0] == 401
        assert {(await exchange(authorization=f"Bearer {TOKEN}"))[0] for _ in range(50)} == {200}

    async def test_a_request_without_any_token_is_no_guess(self, clock: Clock) -> None:
        exchange = Exchange(CLOSED)
        assert {(await exchange())[0] for _ in range(15)} == {401}
        assert (await exchange("POST", "/api/session"))[0] == 200

    async def test_a_refusal_for_another_reason_is_no_guess(self, clock: Clock) -> None:
        exchange = Exchange(CLOSED)
        for _ in range(12):
            assert (await exchange(authorization="Bearer wrong", origin="http://evil.example"))[0] == 403
        assert (await exchange(authorization="Bearer wrong"))[0] == 401

    async def test_without_a_token_nobody_is_made_to_wait(self, clock: Clock) -> None:
        exchange = Exchange(OPEN, answer=401)
        assert {(await exchange("POST", "/api/session"))[0] for _ in range(15)} == {401}

    async def test_a_caller_without_an_address_is_one_caller(self, clock: Clock) -> None:
        exchange = Exchange(CLOSED)
        guesses = [(await exchange(client=None, authorization="Bearer wrong"))[0] for _ in range(11)]
        assert guesses[-1] == 429
        assert (await exchange(client=("3.3.3.3", 1), authorization="Bearer wrong"))[0] == 401


class TestLoggingIn:
    def test_whoever_knows_the_token_gets_a_session_and_nobody_else(self) -> None:
        access = AccessControl(TOKEN)
        assert access.has_session(access.log_in("1.1.1.1", TOKEN))
        assert access.log_in("1.1.1.1", "wrong") is None

    async def test_logging_out_ends_that_session_alone(self) -> None:
        access = AccessControl(TOKEN)
        first, second = (access.log_in("1.1.1.1", TOKEN) for _ in range(2))
        await access.log_out(first)
        await access.log_out("no session")
        await access.log_out(None)
        assert (access.has_session(first), access.has_session(second)) == (False, True)

    async def test_a_session_is_ended_once(self) -> None:
        ended = CountedEndings()
        access = AccessControl(TOKEN, ended)
        cookie = access.log_in("1.1.1.1", TOKEN)
        for text in (cookie, cookie, None, "x"):
            await access.log_out(text)
        assert ended.added == 1

    async def test_where_no_token_is_needed_everybody_is_known_and_nothing_is_a_token(self) -> None:
        access = AccessControl(None)
        await access.log_out("x")
        assert access.log_in("1.1.1.1", "None") is None
        assert not access.has_session("x")
        assert access.is_token("1.1.1.1", "None") is False
        assert access.is_known(request(), "1.1.1.1")
        login = request("POST", "/api/session")
        for _ in range(9):
            access.is_token("1.1.1.1", "")
        assert access.refuse(login, "1.1.1.1") is None

    def test_after_too_many_tokens_only_logging_in_has_to_wait(self) -> None:
        access = AccessControl(TOKEN)
        for _ in range(10):
            access.is_token("1.1.1.1", "wrong")
        with pytest.raises(TooManyTokens):
            access.refuse(request("POST", "/api/session"), "1.1.1.1")
        assert access.refuse(request("GET", "/api/session"), "1.1.1.1") is None
        refusal = access.refuse(request("POST", "/api/runs"), "1.1.1.1")
        assert refusal is not None
        assert refusal.status == 401

    def test_whoever_logs_in_sends_a_token_and_nothing_else(self) -> None:
        large = ServerPolicy(token=TOKEN, largest_body=10 * LARGEST_LOGIN)

        def refused(path: str, size: int, policy: ServerPolicy) -> bool:
            facts = request("POST", path, content_length=str(size), content_type="application/json")
            refusal = refuse(facts, policy)
            return refusal is not None and refusal.status == 413

        assert refused("/api/session", LARGEST_LOGIN + 1, large)
        assert not refused("/api/session", LARGEST_LOGIN, large)
        assert not refused("/api/runs", LARGEST_LOGIN + 1, large)
        assert refused("/api/session", 1001, CLOSED)


class CountedEndings(EndedSessions):
    added = 0

    async def add(self, session: Session) -> None:
        self.added += 1
        await super().add(session)


class LookedFor(EndedSessions):
    """Learns at every look that all sessions were ended at another server."""

    looks = 0

    async def refresh(self) -> None:
        self.looks += 1

    def __contains__(self, session: Session) -> bool:
        return self.looks > 0


class TestWhoLoggedOutElsewhere:
    @pytest.mark.parametrize(
        ("path", "looks"),
        [
            ("/api/runs", 1),
            ("/api/session", 1),
            ("/api/health", 0),
            ("/api/ready", 0),
            ("/", 0),
            ("/runs", 0),
        ],
    )
    async def test_it_is_looked_up_where_a_session_counts(self, path: str, looks: int) -> None:
        ended = LookedFor()
        facts = request(path=path, cookie=f"{COOKIE}={issue(TOKEN)}")
        await AccessControl(TOKEN, ended).refresh(facts)
        assert ended.looks == looks

    @pytest.mark.parametrize(
        "cookie",
        [None, "no-session", issue("another token")],
        ids=["none", "no session", "that of another server"],
    )
    async def test_it_is_not_looked_up_for_whoever_has_no_session(self, cookie: str | None) -> None:
        ended = LookedFor()
        headers = {} if cookie is None else {"cookie": f"{COOKIE}={cookie}"}
        await AccessControl(TOKEN, ended).refresh(request(**headers))
        assert ended.looks == 0

    async def test_without_a_token_there_are_no_sessions(self) -> None:
        ended = LookedFor()
        await AccessControl(None, ended).refresh(request(cookie=f"{COOKIE}={issue(TOKEN)}"))
        assert ended.looks == 0

    async def test_the_guard_looks_before_it_believes_a_session(self) -> None:
        exchange = Exchange(CLOSED, ended=LookedFor())
        assert (await exchange(cookie=f"{COOKIE}={issue(TOKEN)}"))[0] == 401
        assert exchange.reached == 0


class TestTheTokenOfTheServer:
    def test_the_environment_gives_it_without_blanks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVALSTUDIO_TOKEN", f" {TOKEN}\n")
        assert token_of_environment() == TOKEN
        monkeypatch.setenv("EVALSTUDIO_TOKEN", "  ")
        assert token_of_environment() is None
        monkeypatch.delenv("EVALSTUDIO_TOKEN")
        assert token_of_environment() is None

    def test_it_is_made_once_and_only_its_owner_reads_it(self, tmp_path: Path) -> None:
        old = os.umask(0)
        try:
            token, is_new = token_of_project(tmp_path / "project")
        finally:
            os.umask(old)
        assert is_new
        assert len(token) == 43
        path = tmp_path / "project" / "data" / "server.token"
        assert path.read_text() == token
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert token_of_project(tmp_path / "project") == (token, False)

    def test_an_empty_file_gets_a_new_one_and_a_hand_written_one_is_read_without_blanks(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "data" / "server.token"
        path.parent.mkdir()
        path.write_text("  \n" * 50)
        token, is_new = token_of_project(tmp_path)
        assert is_new
        assert path.read_text() == token
        path.write_text(f" {TOKEN}\n")
        path.chmod(0o644)
        assert token_of_project(tmp_path) == (TOKEN, False)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
