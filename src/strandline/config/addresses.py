"""Parses addresses, seeds and links in configuration values, or gives the reason why not.

How:    `host:port`, `[::1]:port`; a seed is `id@host:port`; a link is `id=milliseconds`.
Source: design section 3."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

from strandline.config.keys import INT_MAX, Value
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId

WILDCARD_HOSTS = ("0.0.0.0", "::", "")
RTT_MS_MAX = 60_000
URL_CHARACTERS_MAX = 2_000

_HOST = re.compile(
    r"(?=[A-Za-z0-9])(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?"
    r"|(?=.*:)[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]+)?"
)
_URL = re.compile(r"https?://[!-.0-~][!-~]*")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Seed:
    """A voter of the controller: its broker id and its address for other brokers."""

    id: BrokerId
    address: Address

    def __str__(self) -> str:
        return f"{self.id}@{format_address(self.address)}"


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """Read `host:port`; raises ValueError with the reason."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"must look like [address]:port, not {text!r}")
        port = rest[1:]
    else:
        host, _, port = text.partition(":")
    if not port and default_port is not None and not text.endswith(":"):
        port = str(default_port)
    if not _HOST.fullmatch(host) or not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise ValueError(f"must look like host:port, not {text!r}")
    if not 1 <= int(port) <= 65_535:
        raise ValueError(f"has a port outside 1 to 65535: {text!r}")
    return Address(host=host, port=int(port))


def format_address(address: Address) -> str:
    """The text that `parse_address` reads back."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Read a comma separated list of Kafka addresses; raises ValueError with the reason."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ValueError("names no address: give host:port, or several with commas")
    return tuple(parse_address(part, default_port=9092) for part in parts)


def parse_seed(text: str) -> Seed:
    """Read `id@host:port`; raises ValueError with the reason."""
    number, at, address = text.partition("@")
    if not at or not (number.isascii() and number.isdigit()) or int(number) > INT_MAX:
        raise ValueError(f"must look like id@host:port, not {text!r}")
    return Seed(id=BrokerId(int(number)), address=parse_address(address))


def parse_peer_rtt(text: str) -> tuple[BrokerId, int]:
    """Read `id=milliseconds`; raises ValueError with the reason."""
    number, _, milliseconds = text.partition("=")
    if not all(part.isascii() and part.isdigit() for part in (number, milliseconds)):
        raise ValueError(f"must look like id=milliseconds, not {text!r}")
    if int(milliseconds) > RTT_MS_MAX:
        raise ValueError(f"is a round trip above {RTT_MS_MAX} ms: {text!r}")
    return BrokerId(int(number)), int(milliseconds)


def check_seeds(value: Value) -> str | None:
    """Whether every part is a seed, no id and no address twice."""
    assert isinstance(value, tuple)
    if not value:
        return "is empty: give the controller's voters, each as id@host:port"
    try:
        seeds = [parse_seed(part) for part in value]
    except ValueError as error:
        return str(error)
    ids = [str(seed.id) for seed in seeds]
    addresses = [format_address(seed.address) for seed in seeds]
    for what, seen in (("id", ids), ("address", addresses)):
        twice = next((one for one in seen if seen.count(one) > 1), None)
        if twice is not None:
            return f"gives the {what} {twice} twice"
    return None


def check_peer_rtt(value: Value) -> str | None:
    """Whether every part is a link, no peer twice."""
    assert isinstance(value, tuple)
    try:
        peers = [parse_peer_rtt(part)[0] for part in value]
    except ValueError as error:
        return str(error)
    return "names a broker twice" if len(set(peers)) != len(peers) else None


def is_wildcard(host: str) -> bool:
    """Whether this host means all addresses, so that no client can connect to it."""
    return host in WILDCARD_HOSTS


def is_same_host(one: str, other: str) -> bool:
    """Whether ports on these two hosts exclude each other."""
    return one == other or is_wildcard(one) or is_wildcard(other)


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach this host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(value: Value) -> str | None:
    """Whether this can be a host name or an IP address; empty where the key may be left out."""
    if value == "" or _HOST.fullmatch(str(value)):
        return None
    return f"must be a host name or an IP address, not {value!r}"


def check_label(value: Value) -> str | None:
    """Whether this can be a label; empty means unknown."""
    if value == "" or _LABEL.fullmatch(str(value)):
        return None
    return (
        "must be 1 to 63 of A-Z a-z 0-9 . _ - with a letter or digit at both ends, "
        f"not {str(value)[:80]!r}"
    )


def check_webhook_url(value: Value) -> str | None:
    """Why nothing can be posted there; None where that can be tried, or nothing is given."""
    text = str(value)
    if not text or (_URL.fullmatch(text) and len(text) <= URL_CHARACTERS_MAX):
        return None
    return f"must look like https://host/path, of at most {URL_CHARACTERS_MAX} characters"
