"""Kafka's broker keys whose value comes from the broker's file.

Why:    admin tools read addresses, directories and roles of a broker under Kafka's names.
How:    each row has the function that reads its value from the broker's configuration. The file
        is the only place to change it.
Owns:   nothing.
Source: Kafka 4.3's broker configuration; decision 0045."""

from collections.abc import Callable
from typing import NamedTuple

from strandline.config.addresses import format_address
from strandline.config.broker import BrokerConfig
from strandline.config.kafka.rows import BOOLEAN, INT, LIST, LONG, STRING, fixed
from strandline.config.keys import Key, Value, ValueType, format_value
from strandline.config.listener_section import PLAINTEXT, SSL
from strandline.config.other_ports import REQUIRE

CONTROLLER_LISTENER = "CONTROLLER"


class FileKey(NamedTuple):
    """A key, and how its value is read."""

    key: Key
    read: Callable[[BrokerConfig], str | None]


def _row(
    name: str,
    type_: ValueType,
    default: Value | None,
    doc: str,
    read: Callable[[BrokerConfig], object],
) -> FileKey:
    def read_text(config: BrokerConfig) -> str | None:
        value = read(config)
        return None if value is None else str(value)

    return FileKey(fixed(name, type_, default, doc), read_text)


def _roles(config: BrokerConfig) -> str:
    is_voter = any(seed.id == config.broker_id for seed in config.seeds)
    return "broker,controller" if is_voter else "broker"


FILE_KEYS: tuple[FileKey, ...] = (
    _row(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that clients connect to: `[listener]` or `[[listener]]` of the broker's "
        "file.",
        lambda config: ",".join(
            f"{one.name}://{format_address(one.advertised)}" for one in config.listeners
        ),
    ),
    _row(
        "broker.heartbeat.interval.ms",
        INT,
        2_000,
        "The shortest interval of heartbeats between brokers: `[replication] "
        "heartbeat_interval_ms` of the broker's file.",
        lambda config: config.replication.heartbeat_interval_ms,
    ),
    _row(
        "broker.id",
        INT,
        -1,
        "The broker's id: `[broker] id` of its file.",
        lambda config: config.broker.id,
    ),
    _row(
        "broker.rack",
        STRING,
        None,
        "The broker's rack, as clients see it: `[broker.labels] region` of its file.",
        lambda config: config.labels.region or None,
    ),
    _row(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "How long a connection may be idle before the broker closes it: `[limits] "
        "connection_idle_ms` of the broker's file.",
        lambda config: config.limits.connection_idle_ms,
    ),
    _row(
        "controller.listener.names",
        LIST,
        None,
        "The name of the listener for other brokers, which the controller uses too; `[rpc]` of the "
        "broker's file has its address.",
        lambda config: CONTROLLER_LISTENER,
    ),
    _row(
        "controller.quorum.election.timeout.ms",
        INT,
        1_000,
        "How long a replica waits for its leader before it stands for election: `[replication] "
        "election_timeout_ms` of the broker's file, for the controller and all partitions.",
        lambda config: config.replication.election_timeout_ms,
    ),
    _row(
        "controller.quorum.voters",
        LIST,
        (),
        "The voters of the controller: `[cluster] seeds` of the broker's file.",
        lambda config: ",".join(
            f"{seed.id}@{format_address(seed.address)}" for seed in config.seeds
        ),
    ),
    _row(
        "fetch.max.bytes",
        INT,
        57_671_680,
        "The most record bytes in the answer to one fetch: `[limits] fetch_bytes_max` of the "
        "broker's file.",
        lambda config: config.limits.fetch_bytes_max,
    ),
    _row(
        "inter.broker.listener.name",
        STRING,
        None,
        "Kafka's listener for other brokers. Brokers here use a port and a protocol of their own "
        "(`[rpc]` of the broker's file); this names the first listener of clients.",
        lambda config: config.listeners[0].name,
    ),
    _row(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener, `[listener]` or `[[listener]]` and `[rpc]` of the "
        "broker's file.",
        lambda config: ",".join(
            (
                *(f"{one.name}:{one.protocol}" for one in config.listeners),
                f"{CONTROLLER_LISTENER}:{SSL if config.rpc.tls == REQUIRE else PLAINTEXT}",
            )
        ),
    ),
    _row(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        "Where the broker listens for clients: `[listener]` or `[[listener]]` of its file.",
        lambda config: ",".join(
            f"{one.name}://{format_address(one.bind)}" for one in config.listeners
        ),
    ),
    _row(
        "log.dir",
        LIST,
        ("/tmp/kafka-logs",),
        "The directory of logs and state: `[broker] data_directory` of the broker's file.",
        lambda config: config.broker.data_directory,
    ),
    _row(
        "log.dirs",
        LIST,
        None,
        "The directory of logs and state, of which a broker has one: `[broker] data_directory` of "
        "its file.",
        lambda config: config.broker.data_directory,
    ),
    _row(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        "The interval of checks for segments to remove or to close: `[storage] "
        "retention_check_interval_ms` of the broker's file.",
        lambda config: config.storage.retention_check_interval_ms,
    ),
    _row(
        "max.connections",
        INT,
        2**31 - 1,
        "The most connections at one time: `[limits] connection_count_max` of the broker's file.",
        lambda config: config.limits.connection_count_max,
    ),
    _row(
        "max.connections.per.ip",
        INT,
        2**31 - 1,
        "The most connections from one address: `[limits] connection_count_per_address_max` of "
        "the broker's file.",
        lambda config: config.limits.connection_count_per_address_max,
    ),
    _row(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1_000,
        "The most fetch sessions: `[limits] fetch_session_count_max` of the broker's file.",
        lambda config: config.limits.fetch_session_count_max,
    ),
    _row(
        "metadata.log.dir",
        STRING,
        None,
        "The directory of the controller's log: `[broker] data_directory` of the broker's file.",
        lambda config: config.broker.data_directory,
    ),
    _row(
        "node.id",
        INT,
        None,
        "The broker's id: `[broker] id` of its file.",
        lambda config: config.broker.id,
    ),
    _row(
        "process.roles",
        LIST,
        None,
        "What this process is: every broker serves clients, and those in `[cluster] seeds` of the "
        "broker's file are voters of the controller.",
        _roles,
    ),
    _row(
        "queued.max.request.bytes",
        LONG,
        -1,
        "The most bytes of requests in progress: `[limits] inflight_bytes_max` of the broker's "
        "file.",
        lambda config: config.limits.inflight_bytes_max,
    ),
    _row(
        "remote.log.storage.system.enable",
        BOOLEAN,
        False,
        "Whether the broker has tiered storage: whether `[tiered] buckets` of its file names any.",
        lambda config: format_value(config.tiered.is_enabled),
    ),
    _row(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        "How far the clocks of broker and identity provider may differ: `[oauthbearer] "
        "clock_skew_ms` of the broker's file.",
        lambda config: config.oauthbearer.clock_skew_ms // 1000,
    ),
    _row(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        "The audiences of which a token must name one: `[oauthbearer] expected_audience` of the "
        "broker's file.",
        lambda config: ",".join(config.oauthbearer.expected_audience),
    ),
    _row(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        "The issuer that a token must name: `[oauthbearer] expected_issuer` of the broker's file.",
        lambda config: config.oauthbearer.expected_issuer or None,
    ),
    _row(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3_600_000,
        "How often the broker reads the identity provider's keys anew: `[oauthbearer] "
        "jwks_endpoint_refresh_ms` of the broker's file.",
        lambda config: config.oauthbearer.jwks_endpoint_refresh_ms,
    ),
    _row(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "Where the identity provider's keys are: `[oauthbearer] jwks_endpoint_url` of the broker's "
        "file.",
        lambda config: config.oauthbearer.jwks_endpoint_url or None,
    ),
    _row(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        "The claim of a token that names the user: `[oauthbearer] sub_claim_name` of the broker's "
        "file.",
        lambda config: config.oauthbearer.sub_claim_name,
    ),
    _row(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        "The largest request that the broker accepts: `[limits] request_bytes_max` of its file.",
        lambda config: config.limits.request_bytes_max,
    ),
)

FILE_VALUES: dict[str, Callable[[BrokerConfig], str | None]] = {
    one.key.name: one.read for one in FILE_KEYS
}
"""{name: reads its value}"""
