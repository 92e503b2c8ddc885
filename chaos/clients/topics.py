"""Makes the topics, once every broker is known; ends when every partition has a leader."""

import sys
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clients.command_line import Arguments, parse_arguments
from chaos.hosts import BROKER_IDS

TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 5.0
POLL_S = 0.2
SEGMENT_BYTES = str(1 << 20)
"""Small, so that segments are closed and begun in the middle of everything."""


def main() -> None:
    """Exit code 1 when it does not come about in time."""
    told = parse_arguments()
    admin = AdminClient({"bootstrap.servers": told.bootstrap, "log_level": 2})
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
        if set(metadata.brokers) != set(BROKER_IDS):
            return False
        missing = [name for name in told.topics if name not in metadata.topics]
        if missing:
            _make(admin, {name: told.topics[name] for name in missing})
            return False
    except KafkaException:
        return False
    return all(
        partition.leader in BROKER_IDS
        for name in told.topics
        for partition in metadata.topics[name].partitions.values()
    )


def _make(admin: AdminClient, topics: dict[str, int]) -> None:
    wanted = [
        NewTopic(name, count, len(BROKER_IDS), config={"segment.bytes": SEGMENT_BYTES})
        for name, count in topics.items()
    ]
    for future in admin.create_topics(wanted).values():
        future.result(ASK_TIMEOUT_S)


if __name__ == "__main__":
    main()
