"""Rules between the keys of a broker's file; a broken rule names the key to change and the reason.

Source: STYLE, "Configuration": relations between values are checked at start."""

from collections.abc import Iterator

from strandline.config.access_rules import broken_access_rules
from strandline.config.addresses import format_address, is_same_host, is_wildcard
from strandline.config.broker import BrokerConfig
from strandline.config.bucket_urls import unknown_label_owner
from strandline.config.listener_section import OAUTHBEARER
from strandline.model.access import GROUP_PREFIX
from strandline.model.cluster import Address

HEARTBEATS_PER_ELECTION_MIN = 3


def broken_relations(config: BrokerConfig) -> list[tuple[str, str]]:
    """Every rule that does not hold: (`[section] key`, reason)."""
    return [
        *_addresses(config),
        *broken_access_rules(config),
        *_seeds(config),
        *_replication(config),
        *_limits(config),
        *_links(config),
        *_tiered(config),
        *_access(config),
    ]


def _addresses(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    rpc = config.rpc
    if is_wildcard(config.rpc_advertised.host):
        yield (
            "[rpc] advertised_host",
            f"must be given when host is {rpc.host}: no broker can reach that",
        )
    metrics = config.metrics
    taken: list[tuple[str, Address]] = []
    for key, bind in (
        *((one.port_key, one.bind) for one in config.listeners),
        ("[rpc] port", config.rpc_bind),
        *((("[metrics] port", Address(metrics.host, metrics.port)),) if metrics.port else ()),
    ):
        for other, known in taken:
            if is_same_host(known.host, bind.host) and known.port == bind.port:
                yield key, f"must differ from {other}, which is {bind.port} too"
        taken.append((key, bind))


def _seeds(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    own = config.rpc_advertised
    for seed in config.seeds:
        if seed.id == config.broker_id and seed.address != own:
            yield (
                "[cluster] seeds",
                f"names this broker as {seed}, but [rpc] advertises {format_address(own)}",
            )
        if seed.id != config.broker_id and seed.address == own:
            yield (
                "[cluster] seeds",
                f"gives this broker's rpc address {format_address(own)} to broker {seed.id}",
            )


def _replication(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    replication = config.replication
    least = HEARTBEATS_PER_ELECTION_MIN * replication.heartbeat_interval_ms
    if replication.election_timeout_ms < least:
        yield (
            "[replication] election_timeout_ms",
            f"must be at least {HEARTBEATS_PER_ELECTION_MIN} x heartbeat_interval_ms = {least}, "
            f"not {replication.election_timeout_ms}",
        )
    if replication.inflight_bytes_max < replication.append_bytes_max:
        yield (
            "[replication] inflight_bytes_max",
            f"must be at least append_bytes_max = {replication.append_bytes_max}, "
            f"not {replication.inflight_bytes_max}",
        )


def _limits(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    limits = config.limits
    for name in ("inflight_bytes_max", "partial_bytes_max"):
        if getattr(limits, name) < limits.request_bytes_max:
            yield (
                f"[limits] {name}",
                f"must be at least request_bytes_max = {limits.request_bytes_max}, "
                f"not {getattr(limits, name)}",
            )


def _links(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    if config.broker_id in config.peer_rtt_ms:
        yield "[dev] peer_rtt", f"names broker {config.broker_id}, which is this one"


def _tiered(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    tiered = config.tiered
    owner = unknown_label_owner(tiered.buckets, tiered.bucket_labels)
    if owner is not None:
        yield "[tiered] bucket_labels", f"names the bucket {owner}, which is not among buckets"


def _access(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    access = config.access
    if not access.enforce_rules:
        return
    if not access.super_users:
        yield (
            "[access] super_users",
            "must name a principal if enforce_rules is true: no other one could add the first rule",
        )
    elif all(one.startswith(GROUP_PREFIX) for one in access.super_users) and not any(
        one.entry is not None and one.has_logins and OAUTHBEARER in one.entry.sasl_mechanisms
        for one in config.listeners
    ):
        yield (
            "[access] super_users",
            "names groups only, which tokens name: give a User:NAME, or a [[listener]] with "
            f"{OAUTHBEARER} among its sasl_mechanisms",
        )
