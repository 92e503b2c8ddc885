"""Derives the brokers of one machine from one file: `strandline serve --cores N`.

Why:    a broker uses one core. N files that differ in ids, ports and directories drift apart.
How:    broker i of N, from 0, is the file with these changes:

            id, ports of listeners and of [rpc], advertised ports      + i
            [metrics] port                                             + 1 + i; the machine has it
            data_directory, [tiered] cache_directory                   /broker-ID below it
            [access] audit_file                                        -ID before its suffix
            {id} in the names of logs, audit logs and certificates     ID

        Nothing depends on N, so a larger N adds brokers and changes none.
Owns:   nothing.
Source: docs/decisions/0071-cores.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from strandline.config.addresses import format_address, is_same_host
from strandline.config.broker import BrokerConfig
from strandline.config.keys import INT_MAX
from strandline.config.listener_section import (
    PORT_MAX,
    ListenerEntry,
    parse_listener_address,
    parse_near_address,
)
from strandline.config.other_ports import OFF
from strandline.config.relations import broken_relations
from strandline.model.cluster import Address

ID_MARK = "{id}"
"""In a file's name: the broker's id."""


@dataclass(frozen=True, slots=True)
class PortOfMachine:
    """A port that a machine listens on. `owner`: the broker's id, None for the machine's own."""

    key: str
    bind: Address
    owner: int | None

    @property
    def title(self) -> str:
        """How messages name it."""
        whose = "the machine" if self.owner is None else f"broker {self.owner}"
        return f"{self.key} of {whose}"


def broker_directory(root: str, broker_id: int) -> str:
    """The data directory of a broker below the machine's."""
    return f"{root.rstrip('/')}/broker-{broker_id}"


def derive_brokers(config: BrokerConfig, count: int) -> tuple[BrokerConfig, ...]:
    """The configurations of a machine's brokers, by id. `config`: the file; call
    `broken_machine_rules` first."""
    return tuple(_derive(config, index) for index in range(count))


def broken_machine_rules(config: BrokerConfig, count: int) -> list[tuple[str, str]]:
    """Every rule that does not hold for `count` brokers from this file: (`[section] key`,
    reason)."""
    ends = list(_ends(config, count))
    if ends:
        return ends
    brokers = derive_brokers(config, count)
    found = [*_certificates(config, count), *_shared_ports(config, brokers)]
    for broker in brokers:
        reasons = broken_relations(broker)
        found += [(key, f"broker {broker.broker_id}: {reason}") for key, reason in reasons]
    return list(dict.fromkeys(found))


def _derive(config: BrokerConfig, index: int) -> BrokerConfig:
    number = config.broker.id + index
    rpc, listener, metrics, access = config.rpc, config.listener, config.metrics, config.access
    advertised = listener.advertised_port
    return replace(
        config,
        broker=replace(
            config.broker,
            id=number,
            data_directory=broker_directory(config.broker.data_directory, number),
        ),
        listener=config.listener
        if config.listener_entries
        else replace(
            listener,
            kafka_port=listener.kafka_port + index,
            advertised_port=advertised and advertised + index,
        ),
        listener_entries=tuple(_entry(one, number, index) for one in config.listener_entries),
        rpc=replace(
            rpc,
            port=rpc.port + index,
            advertised_port=rpc.advertised_port and rpc.advertised_port + index,
            certificate=_named(rpc.certificate, number),
            private_key=_named(rpc.private_key, number),
        ),
        metrics=replace(metrics, port=metrics.port and metrics.port + 1 + index),
        access=replace(access, audit_file=_audit_file(access.audit_file, number)),
        tiered=replace(
            config.tiered,
            cache_directory=config.tiered.cache_directory
            and broker_directory(config.tiered.cache_directory, number),
        ),
        log=replace(config.log, file=_named(config.log.file, number)),
    )


def _entry(entry: ListenerEntry, number: int, index: int) -> ListenerEntry:
    near = (parse_near_address(one) for one in entry.advertised_for)
    return replace(
        entry,
        bind=_moved(entry.bind, index),
        advertised=entry.advertised and _moved(entry.advertised, index),
        advertised_for=tuple(
            f"{one.network}={_moved(format_address(one.address), index)}" for one in near
        ),
        certificate=_named(entry.certificate, number),
        private_key=_named(entry.private_key, number),
        more_certificates=tuple(_named(one, number) for one in entry.more_certificates),
    )


def _moved(address: str, index: int) -> str:
    """The address with a port that is higher by `index`."""
    found = parse_listener_address(address)
    return format_address(Address(found.host, found.port + index))


def _named(path: str, number: int) -> str:
    return path.replace(ID_MARK, str(number))


def _audit_file(path: str, number: int) -> str:
    """Each broker has an audit log of its own: it renames the file when it is full."""
    if not path or ID_MARK in path:
        return _named(path, number)
    directory, slash, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    own = f"{stem}-{number}.{suffix}" if stem and dot else f"{name}-{number}"
    return f"{directory}{slash}{own}"


def _ends(config: BrokerConfig, count: int) -> Iterator[tuple[str, str]]:
    """Ids and ports that would be too large."""
    if config.broker.id + count - 1 > INT_MAX:
        yield "[broker] id", f"must be at most {INT_MAX - count + 1} with --cores {count}"
    rpc, metrics = config.rpc, config.metrics
    ports = [("[rpc] port", rpc.port), ("[rpc] advertised_port", rpc.advertised_port)]
    ports += [("[metrics] port", metrics.port and metrics.port + 1)]
    for listener in config.listeners:
        ports.append((listener.port_key, listener.bind.port))
        if listener.advertised.port != listener.bind.port:
            ports.append((f"{listener.place} advertised", listener.advertised.port))
        near = listener.endpoint.near
        ports += [(f"{listener.place} advertised_for", one.address.port) for one in near]
    for key, first in ports:
        if first + count - 1 > PORT_MAX:
            yield (
                key,
                f"--cores {count} needs the ports {first} to {first + count - 1}, and {PORT_MAX} "
                "is the last: give a lower one",
            )


def _certificates(config: BrokerConfig, count: int) -> Iterator[tuple[str, str]]:
    """A certificate for other brokers names one broker."""
    if count == 1 or config.rpc.tls == OFF:
        return
    for name in ("certificate", "private_key"):
        path = getattr(config.rpc, name)
        if ID_MARK not in path:
            yield (
                f"[rpc] {name}",
                f"must have {ID_MARK} in its name with --cores {count}, as in peer-{ID_MARK}.pem: "
                "each broker has a certificate that names it",
            )


def _shared_ports(
    config: BrokerConfig, brokers: Sequence[BrokerConfig]
) -> Iterator[tuple[str, str]]:
    """Ports that two listeners would have; each pair of keys once."""
    taken: dict[int, list[PortOfMachine]] = {}
    told: set[frozenset[str]] = set()
    for port in machine_ports(config, brokers):
        for other in taken.get(port.bind.port, ()):
            pair = frozenset((port.key, other.key))
            if pair in told or not is_same_host(port.bind.host, other.bind.host):
                continue
            told.add(pair)
            yield (
                port.key,
                f"{port.title} and {other.title} would both be {port.bind.port}: with --cores "
                f"{len(brokers)} each takes the ports after it, so put them at least 100 apart",
            )
        taken.setdefault(port.bind.port, []).append(port)


def machine_ports(config: BrokerConfig, brokers: Sequence[BrokerConfig]) -> Iterator[PortOfMachine]:
    """All ports of a machine."""
    if config.metrics.port:
        bind = Address(config.metrics.host, config.metrics.port)
        yield PortOfMachine("[metrics] port", bind, None)
    for broker in brokers:
        number = broker.broker.id
        for listener in broker.listeners:
            yield PortOfMachine(listener.port_key, listener.bind, number)
        yield PortOfMachine("[rpc] port", broker.rpc_bind, number)
        if broker.metrics.port:
            bind = Address(broker.metrics.host, broker.metrics.port)
            yield PortOfMachine("[metrics] port", bind, number)
