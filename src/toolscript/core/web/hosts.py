"""Names and addresses by which only this machine is meant."""

import ipaddress
import re

NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST = re.compile(r"\[(?P<six>[0-9a-fA-F:]+)\](?::\d{1,5})?|(?P<name>[^:\[\]/@\s]+)(?::\d{1,5})?")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<host>.+)")


def is_loopback_host(host: str) -> bool:
    """Of a Host header, with a port or without."""
    return host_name(host) in NAMES


def host_name(host: str) -> str:
    """The name in a Host header, without its port and brackets; empty where it is none."""
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["six"] or found["name"]).lower()


def is_loopback_origin(origin: str) -> bool:
    """An origin is a scheme and a host and nothing else: what is more is there to be misread."""
    found = _ORIGIN.fullmatch(origin)
    return found is not None and is_loopback_host(found["host"])


def is_loopback_address(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
