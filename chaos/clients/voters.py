"""Waits until the placed replicas are the only voters, and all of them are in sync.

Why:    once all is well, observers that stood in vote no more, and voters that left vote again."""

import sys
import time

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from chaos.clients.command_line import Arguments, parse_arguments
from chaos.clients.security import librdkafka
from chaos.clients.topics import CITIES, STOOD_IN_FOR
from chaos.hosts import BROKERS, machine_of

ASK_TIMEOUT_S = 5.0
POLL_S = 0.5


def main() -> None:
    """Ends once it is so; what is not yet goes to its log."""
    told = parse_arguments()
    admin = AdminClient(
        {"bootstrap.servers": told.bootstrap, "log_level": 2, **librdkafka(told.client_config)}
    )
    while missing := _missing(admin, told):
        sys.stderr.write(f"{missing}\n")
        sys.stderr.flush()
        time.sleep(POLL_S)


def _missing(admin: AdminClient, told: Arguments) -> str:
    """The first partition that is not as placed; "" when there is none."""
    try:
        futures = admin.describe_topics(
            TopicCollection(list(told.topics)), request_timeout=ASK_TIMEOUT_S
        )
        for name, future in futures.items():
            for one in future.result(ASK_TIMEOUT_S).partitions:
                in_sync = {node.id for node in one.isr}
                leader = None if one.leader is None else one.leader.id
                machines = sorted(map(machine_of, in_sync))
                if machines != _own(name) or leader not in in_sync:
                    return f"{name}-{one.id}: {sorted(in_sync)}, led by {leader}"
    except KafkaException as error:
        return str(error)
    return ""


def _own(topic: str) -> list[int]:
    """The machines of the voters that the topic was placed with, a voter on each."""
    return [host.broker for host in BROKERS if topic != STOOD_IN_FOR or host.region in CITIES]


if __name__ == "__main__":
    main()
