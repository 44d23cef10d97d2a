"""Addresses of servers: what two of them have in common, what may be shown, and whether they are local."""

from __future__ import annotations

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
