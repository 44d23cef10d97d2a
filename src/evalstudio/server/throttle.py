"""The throttle of tokens: every token that is presented counts before anybody looks whether it is right."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from ipaddress import IPv6Address, ip_address, ip_network

from .errors import ApiError

_WRONG_TOKENS = 10
_WRONG_OF_ALL = 300
_SECONDS = 60.0
_MOST_CALLERS = 10_000
_LONGEST_CALLER = 100


class TooManyTokens(ApiError):
    """No further token is looked at, not even the right one, for this many seconds."""

    def __init__(self, seconds: float) -> None:
        wait = {"Retry-After": str(int(seconds) + 1)}
        super().__init__(429, "Too many wrong tokens; wait a while.", wait)


class TokenThrottle:
    """Counts presented tokens per caller, and of all callers together against guessing from many addresses.

    A caller who has shown the right token waits for its own mistakes only, not for those of others.
    """

    def __init__(self) -> None:
        self._seen: dict[str, list[float]] = {}
        self._all: deque[float] = deque(maxlen=_WRONG_OF_ALL)
        self._known: OrderedDict[str, None] = OrderedDict()

    def must_wait(self, caller: str) -> float | None:
        """How many seconds no token of this caller is looked at."""
        return self._own_wait(caller) or self._common_wait(caller)

    def _own_wait(self, caller: str) -> float | None:
        now = time.monotonic()
        recent = [moment for moment in self._seen.get(caller, ()) if moment > now - _SECONDS]
        return None if len(recent) < _WRONG_TOKENS else _SECONDS - (now - recent[-_WRONG_TOKENS])

    def _common_wait(self, caller: str) -> float | None:
        if caller in self._known or len(self._all) < _WRONG_OF_ALL:
            return None
        wait = self._all[0] + _SECONDS - time.monotonic()
        return wait if wait > 0 else None

    def add(self, caller: str) -> None:
        """Count a token that is about to be compared."""
        if (wait := self.must_wait(caller)) is not None:
            raise TooManyTokens(wait)
        if caller not in self._seen and len(self._seen) >= _MOST_CALLERS:
            self._seen.pop(next(iter(self._seen)))
        now = time.monotonic()
        self._seen[caller] = [*self._seen.get(caller, [])[-_WRONG_TOKENS:], now]
        if caller not in self._known:
            self._all.append(now)

    def was_right(self, caller: str) -> None:
        """Take the last count back, and remember that this caller has the token."""
        self._seen[caller].pop()
        if not self._seen[caller]:
            del self._seen[caller]
        # What is taken back was counted among all unless the caller was known then.
        if caller not in self._known:
            self._all.pop()
        self._known[caller] = None
        self._known.move_to_end(caller)
        if len(self._known) > _MOST_CALLERS:
            self._known.popitem(last=False)


def caller_of(address: str) -> str:
    """Who is counted: an IPv4 address, or the network that one holder of IPv6 addresses has."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:_LONGEST_CALLER]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)
