"""A broker's file as DescribeConfigs tells of it: enough to judge its ports.

How:    `section.key` are the keys of the file; `listeners` and `listener.security.protocol.map` the
        names, addresses and protocols of its listeners. What the answer lacks (certificates,
        mechanisms) is taken to be in order: a stranger's visit shows whether it is.
Owns:   nothing.
Source: config.effective.broker_values."""

from collections.abc import Mapping
from dataclasses import replace

from strandline.config.broker import SECTIONS, BrokerConfig, section_field
from strandline.config.keys import keys_of
from strandline.config.listener_section import REQUIRED, ListenerEntry


def described_config(values: Mapping[str, str]) -> BrokerConfig:
    """The file of {key: value}. Raises ValueError if it lacks what every broker tells."""
    sections = {}
    for section, body in SECTIONS.items():
        given = {}
        for row in keys_of(body, prefix=f"{section}."):
            text = values.get(row.name)
            if text is None and row.default is None:
                raise ValueError(f"{row.name} is missing")
            if text is not None:
                given[row.name.rpartition(".")[2]] = row.parse(text)
        sections[section_field(section)] = body(**given)
    config = BrokerConfig(**sections)
    if "listener.kafka_host" in values:
        return config
    return replace(config, listener_entries=_entries(values))


def _entries(values: Mapping[str, str]) -> tuple[ListenerEntry, ...]:
    protocols = dict(
        one.rpartition(":")[::2] for one in values["listener.security.protocol.map"].split(",")
    )
    found = []
    for text in values["listeners"].split(","):
        name, _, bind = text.partition("://")
        found.append(
            ListenerEntry(
                name=name,
                bind=bind,
                protocol=protocols[name],
                client_certificates=REQUIRED,
                sasl_session_ms=1,
                tls_version_min="1.3",
            )
        )
    return tuple(found)


def advertised(values: Mapping[str, str]) -> tuple[str, ...]:
    """`host:port` of each of its listeners, as clients are told them."""
    texts = values.get("advertised.listeners", "").split(",")
    return tuple(one.partition("://")[2] for one in texts if "://" in one)
