"""Addresses of servers: what two of them have in common, what may be shown, and whether they are local."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit


def origin(address: str | None) -> str:
    """Scheme, host and port, the usual ports filled in: equal for addresses of the same server."""
    text = (address or "").strip()
    try:
        parts = urlsplit(text)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else text
    except ValueError:
        return text


def shown_address(address: str, *, path: bool = True) -> str:
    """An address as it may be shown: references as they are written, no credentials, no query."""
    bare = address.partition("?")[0].partition("#")[0]
    scheme, separator, rest = bare.partition("://") if "://" in bare else ("", "", bare)
    place, slash, below = rest.partition("/")
    return scheme + separator + place.rpartition("@")[2] + (slash + below if path else "")


def host_of(header: str) -> str:
    """The host in a Host header or address, without port, brackets, case and a final dot."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    name = text if text.count(":") > 1 else text.partition(":")[0]
    return name.rstrip(".")


_HEADER = re.compile(
    r"(?:\[(?P<v6>(?=[^\]]*:)[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_])?)\.?)"
    r"(?::(?P<port>[0-9]{1,5}))?",
    re.IGNORECASE | re.ASCII,
)
_LARGEST_PORT = 65_535


def named_host(header: str) -> str | None:
    """The host a Host header names, lower case; none where the header is anything but a host and a port."""
    match = _HEADER.fullmatch(header.strip(" \t"))
    if match is None or (match["port"] and not 1 <= int(match["port"]) <= _LARGEST_PORT):
        return None
    if match["v6"] is None:
        return match["name"].lower()
    # However it is written, the same address is the same text.
    return str(ip_address(match["v6"])) if is_address(match["v6"]) else None


def is_address(name: str) -> bool:
    """Whether it is an IP address rather than a name."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    name = host_of(host)
    return name == "localhost" or (is_address(name) and ip_address(name).is_loopback)
