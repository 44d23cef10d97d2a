"""Which addresses agents may have when others use this server: none of its own network, however written.

A name may resolve to anything, so the check sees the address a connection is about to be opened to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from ..connectors.http_pool import AddressCheck

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IPv4 addresses dressed as IPv6: how many bits stand before the four bytes.
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
        for address in meant_by(ip_address(text.partition("%")[0])):
            if not _is_public(address) and not any(_holds(network, address) for network in networks):
                raise ForbiddenAddress(
                    f"{address} is a private or local address, which agents may not have on a server that "
                    "others use. Add it to allowedAddresses in the config file."
                )

    return check


def meant_by(address: Address) -> Iterator[Address]:
    """The addresses a connection may end at: the IPv4 addresses inside, where there are any."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address in _TEREDO and address.teredo is not None:
        yield from address.teredo
        return
    for network, before in _WRAPPINGS:
        if address in network and int(address) not in (0, 1):
            yield IPv4Address(int(address) >> (128 - before - 32) & 0xFFFFFFFF)
            return
    yield address


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _holds(network: Network, address: Address) -> bool:
    return network.version == address.version and address in network
