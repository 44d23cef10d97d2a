"""Who may call the server, and how much they may send."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_network

from ..base.addresses import host_of, is_address, is_local, named_host
from ..base.lazy_dataclass import dataclass

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
LARGEST_BODY = 10_000_000
LARGEST_LOGIN = 4_096
LARGEST_HEADERS = 32_768
MOST_HEADERS = 100
SHORTEST_TOKEN = 16


class UnsafeServer(ValueError):
    """A server that would not be safe to run; the message says what to change."""


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """What is decided before the first request."""

    token: str | None = None
    hosts: frozenset[str] = LOCAL_NAMES
    any_address: bool = False
    largest_body: int = LARGEST_BODY
    trusted_proxies: tuple[str, ...] = ()

    @property
    def token_mode(self) -> bool:
        return self.token is not None

    def allows_host(self, header: str) -> bool:
        """Whether a Host header names this server; a name that merely resolves to it does not."""
        name = named_host(header)
        return name is not None and (name in self.hosts or (self.any_address and is_address(name)))


def policy_for(
    host: str,
    token: str | None,
    allowed_hosts: Sequence[str] = (),
    trusted_proxies: Sequence[str] = (),
) -> ServerPolicy:
    """The policy for a bind address. Any but a local one needs a token."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise UnsafeServer(f"The token is too short; {SHORTEST_TOKEN} characters are the least.")
    local = is_local(host)
    if not local and token is None:
        raise UnsafeServer(f"{host} can be reached from other machines, which needs a token.")
    proxies = tuple(str(ip_network(one, strict=False)) for one in trusted_proxies)
    names = {*LOCAL_NAMES, *(host_of(name) for name in allowed_hosts)}
    if not local:
        names |= {host_of(host), socket.gethostname().lower()}
    return ServerPolicy(token, frozenset(names), not local, trusted_proxies=proxies)
