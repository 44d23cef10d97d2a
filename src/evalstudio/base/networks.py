"""IP addresses agents may not have: where clouds keep their keys, and networks that are not public.

The lists are ours, from the registries of special-purpose addresses and the manuals of the providers, because
what ``ipaddress`` calls global changes with the version of Python and includes some of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
AddressCheck = Callable[[str], None]

METADATA = [
    ip_network(text)
    for text in (
        # Link-local: AWS, Google, Azure, Oracle, DigitalOcean, Hetzner, OpenStack, IBM, Tencent, Scaleway and
        # others, with the credentials of ECS tasks (.170.2) and EKS pods (.170.23).
        "169.254.0.0/16",
        "168.63.129.16",  # Azure's wire server
        "192.0.0.192",  # Oracle
        "100.100.100.200",  # Alibaba
        "192.80.8.124",  # Equinix
        "fd00:ec2::/32",  # AWS, with EKS pods (::23) and DNS (::253)
        "fd20:ce::/32",  # Google
        "fd00:c1::/32",  # Oracle
        "fd00:42::/32",  # Scaleway
        "fd00:a9fe:a9fe::/48",  # Linode
        "fe80::a9fe:a9fe",  # OpenStack and Hetzner
    )
]
_NOT_PUBLIC = [
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        # Within the global unicast addresses of IPv6; all others are refused anyway.
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")

# IPv4 addresses written as IPv6: how many bits stand before the four bytes.
_WRAPPINGS = [
    (IPv6Network("::/96"), 96),
    (IPv6Network("::ffff:0:0/96"), 96),
    (IPv6Network("::ffff:0:0:0/96"), 96),
    (IPv6Network("64:ff9b::/96"), 96),
    (IPv6Network("2002::/16"), 16),
]
# Translated somewhere in a network of our own, wherever the four bytes stand.
_LOCAL_TRANSLATION = IPv6Network("64:ff9b:1::/48")
_TEREDO = IPv6Network("2001::/32")
# The last 64 bits of an ISATAP address: a mark and the IPv4 address.
_ISATAP = (0x00005EFE, 0x02005EFE)


class ForbiddenAddress(ValueError):
    """An address agents may not have here."""


def public_only(allowed: Iterable[str] = ()) -> AddressCheck:
    """A check that lets only public addresses through, and those of the allowed ranges."""
    networks = [ip_network(one, strict=False) for one in allowed]
    refuse_metadata = no_metadata(allowed)

    def check(text: str) -> None:
        refuse_metadata(text)
        for address in _endpoints(ip_address(text.partition("%")[0])):
            if not _is_public(address) and not _is_in(address, networks):
                raise ForbiddenAddress(
                    f"{address} is a private or local address, which agents may not have on a server that "
                    "others use. Add it to allowedAddresses in the config file."
                )

    return check


def no_metadata(allowed: Iterable[str] = ()) -> AddressCheck:
    """A check that lets nobody at the metadata of a cloud, unless that very address is allowed."""
    alone = [one for text in allowed if (one := ip_network(text, strict=False)).num_addresses == 1]

    def check(text: str) -> None:
        address = ip_address(text.partition("%")[0])
        for endpoint in {address, *_endpoints(address)}:
            if _is_in(endpoint, METADATA) and not _is_in(endpoint, alone):
                raise ForbiddenAddress(
                    f"{endpoint} is where clouds keep the metadata and keys of a machine, which is no agent. "
                    f'If it is one, add "{endpoint}" to allowedAddresses in the config file.'
                )

    return check


def _is_in(address: Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)


def _endpoints(address: Address) -> Sequence[Address]:
    """The addresses a connection may end at: the IPv4 addresses inside, where there are any."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address in _TEREDO and address.teredo is not None:
        return address.teredo
    for network, before in _WRAPPINGS:
        if address in network and int(address) not in (0, 1):
            return (IPv4Address(int(address) >> (128 - before - 32) & 0xFFFFFFFF),)
    if address in _LOCAL_TRANSLATION or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        return (address, IPv4Address(int(address) & 0xFFFFFFFF))
    return (address,)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return not _is_in(address, _NOT_PUBLIC)
