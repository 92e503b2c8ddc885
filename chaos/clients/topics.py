"""Makes the topics, once every broker is known; ends when every partition has a leader.

How:    each replica of a partition is on another machine. `payments` loses voters that are down,
        and gets them back; in `trades` an observer stands in for them. The others have all brokers
        for voters, or one of each machine, whatever happens.
Source: decisions 0020 and 0025; "Automatic Observer Promotion" (the 2.5-data-centre example)."""

import json
import sys
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clients.command_line import Arguments, parse_arguments
from chaos.clients.security import librdkafka
from chaos.hosts import BROKER_IDS, all_brokers, brokers_of

TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 5.0
POLL_S = 0.2
SEGMENT_BYTES = str(1 << 20)
"""Small, so that segments are closed and begun in the middle of everything."""
STOOD_IN_FOR = "trades"
CITIES = {"east": 2, "west": 2}
"""{region: how many voters `trades` has there}, two of them in each, and three have to acknowledge;
its observer is in the third region."""
STAND_IN_REGION = "south"
SETTINGS = {
    "payments": {"voters.shrink.enable": "true", "min.insync.replicas": "2"},
    STOOD_IN_FOR: {
        "voters.shrink.enable": "true",
        "min.insync.replicas": "3",
        "confluent.placement.constraints": json.dumps(
            {
                "version": 2,
                "replicas": [
                    {"count": count, "constraints": {"rack": region}}
                    for region, count in CITIES.items()
                ],
                "observers": [{"count": 1, "constraints": {"rack": STAND_IN_REGION}}],
                "observerPromotionPolicy": "under-min-isr",
            }
        ),
    },
}
"""What topics have beside that."""
PLACED = -1
"""As many replicas as the topic's placement says."""


def main() -> None:
    """Exit code 1 when it does not come about in time."""
    told = parse_arguments()
    admin = AdminClient(
        {"bootstrap.servers": told.bootstrap, "log_level": 2, **librdkafka(told.client_config)}
    )
    until = time.monotonic() + TIMEOUT_S
    while not _is_ready(admin, told):
        if time.monotonic() > until:
            sys.stderr.write(f"no topics within {TIMEOUT_S:.0f} s\n")
            sys.exit(1)
        time.sleep(POLL_S)


def _is_ready(admin: AdminClient, told: Arguments) -> bool:
    """Whether all is there; makes what is not."""
    try:
        metadata = admin.list_topics(timeout=ASK_TIMEOUT_S)
        if set(metadata.brokers) != set(all_brokers(told.cores)):
            return False
        missing = [name for name in told.topics if name not in metadata.topics]
        if missing:
            _make(admin, {name: told.topics[name] for name in missing}, told.cores)
            return False
    except KafkaException:
        return False
    return all(
        partition.leader in metadata.brokers
        for name in told.topics
        for partition in metadata.topics[name].partitions.values()
    )


def _make(admin: AdminClient, topics: dict[str, int], cores: int) -> None:
    wanted = [_topic(name, count, cores) for name, count in topics.items()]
    for future in admin.create_topics(wanted).values():
        future.result(ASK_TIMEOUT_S)


def _topic(name: str, count: int, cores: int) -> NewTopic:
    config = {"segment.bytes": SEGMENT_BYTES, **SETTINGS.get(name, {})}
    if name == STOOD_IN_FOR:
        return NewTopic(name, count, PLACED, config=config)
    if not cores:
        return NewTopic(name, count, len(BROKER_IDS), config=config)
    placed = [
        [brokers_of(machine, cores)[partition % cores] for machine in _from(partition)]
        for partition in range(count)
    ]
    return NewTopic(name, count, replica_assignment=placed, config=config)


def _from(partition: int) -> tuple[int, ...]:
    """The machines, another one first in each partition."""
    first = partition % len(BROKER_IDS)
    return BROKER_IDS[first:] + BROKER_IDS[:first]


if __name__ == "__main__":
    main()
