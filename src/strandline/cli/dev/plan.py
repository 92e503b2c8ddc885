"""The plan of a local cluster: brokers in regions, round trips between them, ports, voters.

Why:    every mistake in the command line is found before anything is written.
How:    pure; the caller passes the function that checks a port. Broker ids count from 1 in the
        order of the regions. Kafka ports count up from the base, rpc ports from 100 above it;
        ports in use are skipped.
Source: design section 10."""

import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain, zip_longest
from pathlib import Path
from urllib.parse import quote

from strandline.base.errors import OperatorError
from strandline.config.addresses import RTT_MS_MAX, check_label
from strandline.config.keys import Value

BROKER_COUNT_MAX = 100
VOTER_COUNT_MAX = 5
RPC_PORT_DISTANCE = 100
LOOPBACK = "127.0.0.1"
PORT_MAX = 65_535
TIERED_CHECK_SETTING = "storage.retention_check_interval_ms=5000"
"""With `--tiered`, unless the cluster has another: a first try of `local.retention.ms` shows its
effect within seconds."""


Settings = Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """One broker of a local cluster."""

    id: int
    region: str
    kafka_port: int
    rpc_port: int

    @property
    def address(self) -> str:
        """Where Kafka clients connect."""
        return f"{LOOPBACK}:{self.kafka_port}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A local cluster. `rtt_ms`: {(region, region): milliseconds}, each pair once, in sorted
    order."""

    cluster_id: str
    brokers: tuple[PlannedBroker, ...]
    rtt_ms: Mapping[tuple[str, str], int] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    """Configuration that every broker gets on top: {section: {key: value}}."""
    voter_ids: tuple[int, ...] = ()
    """The controller's voters once brokers have come or gone; empty: derived from the brokers."""
    is_secure: bool = False
    """Whether clients log in over TLS, and brokers have certificates for each other."""

    @property
    def bootstrap(self) -> str:
        """Every Kafka address, comma separated."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def regions(self) -> dict[str, int]:
        """{region: number of brokers}, in order of the first broker."""
        counts: dict[str, int] = {}
        for broker in self.brokers:
            counts[broker.region] = counts.get(broker.region, 0) + 1
        return counts

    @property
    def voters(self) -> tuple[PlannedBroker, ...]:
        """The controller's voters: an odd number, at most five, taken from the regions in turn.

        Adding a broker changes none of them."""
        if self.voter_ids:
            return tuple(self.broker(one) for one in self.voter_ids)
        count = min(len(self.brokers), VOTER_COUNT_MAX)
        count -= 1 - count % 2
        by_region = [
            [broker for broker in self.brokers if broker.region == region]
            for region in self.regions
        ]
        in_turn = [one for one in chain(*zip_longest(*by_region)) if one is not None]
        return tuple(sorted(in_turn[:count], key=lambda broker: broker.id))

    def link_rtt_ms(self, one: PlannedBroker, other: PlannedBroker) -> int:
        """The simulated round trip between two brokers, 0 for none."""
        return self.rtt_ms.get(region_pair(one.region, other.region), 0)

    def metrics_port(self, broker: PlannedBroker) -> int:
        """The broker's HTTP port, 0 for none: each has one, for they share a machine."""
        first = self.settings.get("metrics", {}).get("port")
        return first + broker.id - 1 if isinstance(first, int) and first else 0

    def broker(self, number: int) -> PlannedBroker:
        """The broker with this id; raises OperatorError when there is none."""
        for broker in self.brokers:
            if broker.id == number:
                return broker
        ids = ", ".join(str(broker.id) for broker in self.brokers)
        raise OperatorError(f"no broker {number} in this cluster; its brokers: {ids}")

    def brokers_in(self, region: str) -> tuple[PlannedBroker, ...]:
        """The brokers of a region; raises OperatorError when there is no such region."""
        found = tuple(broker for broker in self.brokers if broker.region == region)
        if not found:
            raise OperatorError(
                f"no region {region!r} in this cluster; its regions: {', '.join(self.regions)}"
            )
        return found

    def with_broker(self, broker: PlannedBroker) -> "Plan":
        """The plan with one more broker, which does not vote in the controller."""
        return replace(self, brokers=(*self.brokers, broker), voter_ids=self._fixed_voters())

    def without_broker(self, broker: PlannedBroker, *, voter_ids: tuple[int, ...]) -> "Plan":
        """The plan without a broker; these are the controller's voters now. Links of a region that
        has no brokers any more go, too."""
        assert broker.id not in voter_ids, "a voter stays"
        brokers = tuple(one for one in self.brokers if one != broker)
        regions = {one.region for one in brokers}
        links = {link: ms for link, ms in self.rtt_ms.items() if regions.issuperset(link)}
        return replace(self, brokers=brokers, rtt_ms=links, voter_ids=voter_ids)

    def _fixed_voters(self) -> tuple[int, ...]:
        return tuple(one.id for one in self.voters)


def region_pair(one: str, other: str) -> tuple[str, str]:
    """The key of a link, whichever way round."""
    return (one, other) if one <= other else (other, one)


def parse_regions(text: str) -> dict[str, int]:
    """Read `east=2,west=2,south=1`; raises OperatorError."""
    regions: dict[str, int] = {}
    for part in _parts(text):
        name, _, number = part.partition("=")
        count = _whole_number(number or "1")
        if count is None or not 1 <= count <= BROKER_COUNT_MAX:
            raise OperatorError(f"--regions: {part!r}: expected name=brokers, as in east=2")
        reason = check_label(name) if name else "must have a name"
        if reason is not None:
            raise OperatorError(f"--regions: a region {reason}")
        if name in regions:
            raise OperatorError(f"--regions: {name} is given twice")
        regions[name] = count
    total = sum(regions.values())
    if not 1 <= total <= BROKER_COUNT_MAX:
        raise OperatorError(f"--regions: {total} brokers: expected 1 to {BROKER_COUNT_MAX}")
    return regions


def parse_rtt(text: str, regions: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Read `east-west=30,east-south=80` (milliseconds); region names may have hyphens
    themselves."""
    links: dict[tuple[str, str], int] = {}
    for part in _parts(text):
        name, _, number = part.partition("=")
        milliseconds = _whole_number(number)
        if milliseconds is None or milliseconds > RTT_MS_MAX:
            raise OperatorError(
                f"--rtt: {part!r}: expected region-region=milliseconds, as in east-west=30"
            )
        link = _split_link(name, regions)
        if link in links:
            raise OperatorError(f"--rtt: link {name} is given twice")
        links[link] = milliseconds
    return links


def format_rtt(rtt_ms: Mapping[tuple[str, str], int]) -> str:
    """The text that `parse_rtt` reads back."""
    return ",".join(f"{one}-{other}={ms}" for (one, other), ms in sorted(rtt_ms.items()))


def parse_settings(texts: Sequence[str]) -> Settings:
    """Read `section.key=value` texts; raises OperatorError."""
    if not texts:
        return {}
    from strandline.config.broker import BROKER_KEYS  # Many keys: imported only if --set is given.

    known = {row.name: row for row in BROKER_KEYS}
    settings: dict[str, dict[str, Value]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise OperatorError(f"--set {text!r}: expected section.key=value")
        row = known.get(name)
        if row is None:
            close = get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise OperatorError(f"--set {name}: unknown key{hint}")
        section, _, field_name = name.rpartition(".")
        if section in ("broker", "broker.labels", "cluster", "listener", "rpc"):
            raise OperatorError(
                f"--set {name}: not allowed: each broker of a local cluster has its own"
            )
        try:
            settings.setdefault(section, {})[field_name] = row.parse(value)
        except ValueError as error:
            raise OperatorError(f"--set {name}: {error}") from error
    return settings


def bucket_settings(directory: Path, regions: Iterable[str]) -> str:
    """The setting that gives each region a bucket of its own: DIR/buckets/REGION."""
    return "tiered.buckets=" + ",".join(
        f"{region}=file://{quote(str(directory / 'buckets' / region))}" for region in regions
    )


def merge_settings(base: Settings, more: Settings) -> Settings:
    """Both, key by key; `more` wins."""
    return {
        section: {**base.get(section, {}), **more.get(section, {})} for section in (*base, *more)
    }


def plan_brokers(
    regions: Mapping[str, int], *, port_base: int, is_free: Callable[[int], bool]
) -> tuple[PlannedBroker, ...]:
    """Give every broker an id, a region and two free ports."""
    names = [region for region, count in regions.items() for _ in range(count)]
    taken: set[int] = set()

    def next_port(start: int) -> int:
        port = start
        while port in taken or not (port > PORT_MAX or is_free(port)):
            port += 1
        if port > PORT_MAX:
            raise OperatorError(
                f"--port-base {port_base}: too few free ports above it for {len(names)} brokers"
            )
        taken.add(port)
        return port

    kafka_ports = [next_port(port_base) for _ in names]
    rpc_base = max(port_base + RPC_PORT_DISTANCE, kafka_ports[-1] + 1)
    rpc_ports = [next_port(rpc_base) for _ in names]
    return tuple(
        PlannedBroker(id=number, region=region, kafka_port=kafka_port, rpc_port=rpc_port)
        for number, (region, kafka_port, rpc_port) in enumerate(
            zip(names, kafka_ports, rpc_ports, strict=True), start=1
        )
    )


def plan_next_broker(
    plan: Plan, region: str, *, used_ids: Collection[int], is_free: Callable[[int], bool]
) -> PlannedBroker:
    """A broker to add: the next id above all used ones, and two free ports above the others'.

    `used_ids`: ids that have a directory already, of brokers that were removed."""
    reason = check_label(region) if region else "must have a name"
    if reason is not None:
        raise OperatorError(f"--region: a region {reason}")
    if len(plan.brokers) >= BROKER_COUNT_MAX:
        raise OperatorError(f"a local cluster has at most {BROKER_COUNT_MAX} brokers")
    taken = {port for one in plan.brokers for port in (one.kafka_port, one.rpc_port)}

    def next_port(port: int) -> int:
        while port in taken or not (port > PORT_MAX or is_free(port)):
            port += 1
        if port > PORT_MAX:
            raise OperatorError("no port above those of the other brokers is free")
        taken.add(port)
        return port

    return PlannedBroker(
        id=max((*used_ids, *(one.id for one in plan.brokers))) + 1,
        region=region,
        kafka_port=next_port(max(one.kafka_port for one in plan.brokers) + 1),
        rpc_port=next_port(max(one.rpc_port for one in plan.brokers) + 1),
    )


def is_port_free(port: int) -> bool:
    """Whether a broker could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def _split_link(name: str, regions: Mapping[str, int]) -> tuple[str, str]:
    """The two regions of `east-west`: the only split at a hyphen into two known names."""
    splits = [(name[:at], name[at + 1 :]) for at, char in enumerate(name) if char == "-"]
    for one, other in splits:
        if one in regions and other in regions:
            return region_pair(one, other)
    unknown = next((r for split in splits for r in split if r not in regions), name)
    close = get_close_matches(unknown, regions, n=1, cutoff=0.6)
    hint = f" (did you mean {close[0]}?)" if close else f"; the regions are {', '.join(regions)}"
    raise OperatorError(f"--rtt: {name!r} is not a link between two regions{hint}")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
