"""How a server may be talked to: from which hosts, with which token, how much at once."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
LARGEST_BODY = 10_000_000
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

    @property
    def token_mode(self) -> bool:
        return self.token is not None

    def allows_host(self, header: str) -> bool:
        """Whether a Host header names this server; a name that merely resolves to it does not."""
        name = host_of(header)
        return name in self.hosts or (self.any_address and is_address(name))


def policy_for(host: str, token: str | None, allowed_hosts: Sequence[str] = ()) -> ServerPolicy:
    """The policy for a bind address. Any but a local one needs a token."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise UnsafeServer(f"The token is too short; {SHORTEST_TOKEN} characters are the least.")
    local = is_local(host)
    if not local and token is None:
        raise UnsafeServer(f"{host} can be reached from other machines, which needs a token.")
    names = {*LOCAL_NAMES, *(host_of(name) for name in allowed_hosts)}
    if not local:
        names |= {host_of(host), socket.gethostname().lower()}
    return ServerPolicy(token=token, hosts=frozenset(names), any_address=not local)


def host_of(header: str) -> str:
    """The host in a Host header or address, without port, brackets, case and a final dot."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    name = text if text.count(":") > 1 else text.partition(":")[0]
    return name.rstrip(".")


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server bound here."""
    name = host_of(host)
    return name == "localhost" or (is_address(name) and ip_address(name).is_loopback)
