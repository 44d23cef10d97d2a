"""Who may call the server, and which addresses agents may have when others use it."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from ..base.addresses import host_of, is_address, is_local, named_host
from ..connectors.http_pool import AddressCheck

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


Address = IPv4Address | IPv6Address

# IPv4 addresses written as IPv6: how many bits stand before the four bytes.
_WRAPPINGS = [
    (IPv6Network("::/96"), 96),
    (IPv6Network("::ffff:0:0/96"), 96),
    (IPv6Network("::ffff:0:0:0/96"), 96),
    (IPv6Network("64:ff9b::/96"), 96),
    (IPv6Network("64:ff9b:1::/48"), 96),
    (IPv6Network("2002::/16"), 16),
]
_TEREDO = IPv6Network("2001::/32")


class ForbiddenAddress(ValueError):
    """An address agents may not have here."""


def public_only(allowed: Iterable[str] = ()) -> AddressCheck:
    """A check that lets only public addresses through, and those of the allowed ranges."""
    networks = [ip_network(one, strict=False) for one in allowed]

    def check(text: str) -> None:
        for address in _endpoints(ip_address(text.partition("%")[0])):
            if not _is_public(address) and not any(address in network for network in networks):
                raise ForbiddenAddress(
                    f"{address} is a private or local address, which agents may not have on a server that "
                    "others use. Add it to allowedAddresses in the config file."
                )

    return check


def _endpoints(address: Address) -> Sequence[Address]:
    """The addresses a connection may end at: the IPv4 addresses inside, where there are any."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address in _TEREDO and address.teredo is not None:
        return address.teredo
    for network, before in _WRAPPINGS:
        if address in network and int(address) not in (0, 1):
            return (IPv4Address(int(address) >> (128 - before - 32) & 0xFFFFFFFF),)
    return (address,)


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved
