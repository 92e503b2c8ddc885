"""Which hosts brokers may post alarms to: `[security] webhook_hosts` of a broker's file.

Why:    a client that may alter the cluster's configuration must not make brokers call services that
        only brokers reach: the metadata service of a cloud, a program on the broker's machine.
How:    `host` or `host:port`; without a port, all ports. A URL's host must be listed as it stands.
        Where it leads by DNS is judged when it is called: an address of the machine itself, of its
        link or of a metadata service must be listed, too.
Owns:   nothing.
Source: decision 0069, "Webhooks"."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from strandline.config.addresses import parse_address
from strandline.config.keys import Value

PORTS = {"http": 80, "https": 443}
LOCALHOST = "localhost"
_ANY_PORT = 0
_METADATA = frozenset(
    ipaddress.ip_address(one)
    for one in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
"""Metadata services of clouds that are not link-local (Alibaba, Azure, Oracle, AWS)."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses that stand for IPv4 ones (RFC 6052)."""
_IPV4_BITS = 32

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_webhook_hosts(value: Value) -> str | None:
    """Why this list is not legal; None if it is."""
    assert isinstance(value, tuple)
    for one in value:
        try:
            _parse(one)
        except ValueError:
            return f"must be a list of hosts, each as host or host:port, not {one!r}"
    return None


def _parse(text: str) -> tuple[str, int]:
    """(host, port), 0 for all ports; raises ValueError."""
    if text.count(":") > 1 and not text.startswith("["):
        return _plain(str(ipaddress.ip_address(text))), _ANY_PORT
    if text.startswith("[") and text.endswith("]"):
        return _plain(str(ipaddress.ip_address(text[1:-1]))), _ANY_PORT
    if ":" not in text:
        return _plain(parse_address(text, default_port=1).host), _ANY_PORT
    address = parse_address(text)
    return _plain(address.host), address.port


def _plain(host: str) -> str:
    """A host to compare: in small letters, addresses in their one spelling."""
    host = host.lower().rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def target_of(url: str) -> tuple[str, int]:
    """The host and port of an http or https URL; raises ValueError with the reason."""
    parts = urlsplit(url)
    if "@" in parts.netloc or "\\" in url:
        raise ValueError("must have no user, password or \\: put a token into its path or query")
    host, port = parts.hostname, parts.port
    if parts.scheme not in PORTS or not host:
        raise ValueError("must look like https://host/path")
    return _plain(host), port or PORTS[parts.scheme]


class WebhookHosts:
    """The list, read from texts that were checked before."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._listed = frozenset(_parse(one) for one in texts)

    def refuse(self, url: str) -> str | None:
        """Why alarms may not be posted to a URL; None if they may, or if it is empty."""
        if not url:
            return None
        try:
            host, port = target_of(url)
        except ValueError as error:
            return str(error)
        if self._has(host, port):
            return None
        return (
            f"names the host {host}:{port}, which [security] webhook_hosts of the brokers' files "
            "does not list: add it on every broker, and restart them"
        )

    def allows(self, url: str, address: str) -> bool:
        """Whether the host of a URL that `refuse` lets pass may be called at an address that DNS
        gives."""
        host, port = target_of(url)
        found = _ipv4_of(ipaddress.ip_address(address.partition("%")[0]))
        if host == LOCALHOST and found.is_loopback:
            return True
        return not _is_near(found) or self._has(str(found), port)

    def _has(self, host: str, port: int) -> bool:
        return not self._listed.isdisjoint({(host, port), (host, _ANY_PORT)})


def near_hosts(texts: Iterable[str]) -> list[str]:
    """Those of a list that are this machine, its link or a metadata service."""
    found = []
    for text in texts:
        host, _ = _parse(text)
        try:
            is_near = _is_near(_ipv4_of(ipaddress.ip_address(host)))
        except ValueError:
            is_near = host == LOCALHOST
        if is_near:
            found.append(text)
    return found


def _ipv4_of(address: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address in _TRANSLATED:
            return ipaddress.IPv4Address(int(address) & (1 << _IPV4_BITS) - 1)
    return address


def _is_near(address: IpAddress) -> bool:
    """Whether an address is the machine's own, its link's, a group's or a metadata service's."""
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address.is_reserved
        or address in _METADATA
    )
