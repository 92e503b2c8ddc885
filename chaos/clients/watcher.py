"""Asks the leader of each partition where it ends, again and again, from one region.

Why:    a leader that was deposed, stopped or cut off must not answer with old offsets."""

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.clients.command_line import Stop, parse_arguments
from chaos.clients.security import librdkafka
from chaos.ledger import Client, LedgerWriter, Listed, now_ns

ASK_TIMEOUT_S = 1.0
POLL_S = 0.3


def ask_anew(consumer: Consumer) -> None:
    """Nobody may answer now; librdkafka remembers that there is no leader until it is told."""
    try:
        consumer.list_topics(timeout=ASK_TIMEOUT_S)
    except KafkaException:
        pass


def main() -> None:
    """Until SIGTERM."""
    told = parse_arguments()
    stop = Stop()
    ledger = LedgerWriter(told.ledger, Client(told.name))
    consumer = Consumer(
        {
            "bootstrap.servers": told.bootstrap,
            "client.id": told.name,
            "group.id": told.name,
            "socket.timeout.ms": 6_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
            **librdkafka(told.client_config),
        }
    )
    while not stop.is_asked:
        for topic, partition in told.partitions:
            begun_ns = now_ns()
            try:
                _, end = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=ASK_TIMEOUT_S, cached=False
                )
            except KafkaException:
                ask_anew(consumer)
                continue
            ledger.add(Listed(begun_ns, now_ns(), topic, partition, end))
        consumer.poll(POLL_S)
    consumer.close()


if __name__ == "__main__":
    main()
