"""Writes with a right that comes and goes: one request at a time, each sent once.

Why:    a library sends a record again after a time-out, so that a refusal may follow an attempt
        that was written. Here a refusal is of the only attempt: the record must be in no log.
Source: docs/internals/chaos.md."""

import time

from chaos.clients.command_line import Arguments, Stop, parse_arguments
from chaos.clients.direct import connect, transport_of
from chaos.clients.pace import Pace
from chaos.hosts import BROKERS, Host
from chaos.ledger import Acknowledged, Client, LedgerWriter, Refused, now_ns
from chaos.records import make_value, mark_of
from strandline.base.errors import StrandlineError
from strandline.client.wire.connection import Connection
from strandline.protocol.errors import Error
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.record import Record, build_batch

TIMEOUT_MS = 3_000
PAUSE_S = 0.05


class Writer:
    """One connection for each broker."""

    def __init__(self, told: Arguments, ledger: LedgerWriter) -> None:
        self._transport = transport_of(told.client_config)
        self._name = told.name
        self._topics = list(told.topics)
        self._ledger = ledger
        self._connections: dict[int, Connection] = {}
        self._leaders: dict[tuple[str, int], int] = {}

    def send(self, number: int, topic: str, partition: int) -> None:
        """One record, once."""
        value = make_value(self._name, number)
        try:
            leader = self._leader(topic, partition)
            if leader is None:
                return
            connection = self._connection(leader)
            sent_ns = now_ns()
            batch = bytes(build_batch([Record(0, time.time_ns() // 1_000_000, None, value)]))
            request = ProduceRequest(
                acks=-1,
                timeout_ms=TIMEOUT_MS,
                topic_data=[
                    TopicProduceData(topic, partition_data=[PartitionProduceData(partition, batch)])
                ],
            )
            answer = connection.call(request, ProduceResponse, TIMEOUT_MS)
        except StrandlineError:
            self._leaders.clear()
            return
        (found,) = answer.responses[0].partition_responses
        mark = mark_of(value)
        if found.error_code == Error.NONE:
            entry = Acknowledged(now_ns(), sent_ns, topic, partition, found.base_offset, mark)
            self._ledger.add(entry)
        elif found.error_code == Error.TOPIC_AUTHORIZATION_FAILED:
            self._ledger.add(Refused(now_ns(), topic, partition, mark))
        else:
            self._leaders.clear()

    def _leader(self, topic: str, partition: int) -> int | None:
        if (topic, partition) not in self._leaders:  # It may have had none a moment ago.
            for host in BROKERS:
                try:
                    self._ask(host)
                    break
                except StrandlineError:
                    continue
        return self._leaders.get((topic, partition))

    def _ask(self, host: Host) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=one) for one in self._topics])
        answer = self._connection(host.broker).call(request, MetadataResponse, TIMEOUT_MS)
        self._leaders = {
            (topic.name or "", one.partition_index): one.leader_id
            for topic in answer.topics
            for one in topic.partitions
            if one.leader_id > 0
        }

    def _connection(self, broker: int) -> Connection:
        connection = self._connections.get(broker)
        if connection is None or connection.is_closed:
            connection = connect(self._transport, broker, TIMEOUT_MS)
            self._connections[broker] = connection
        return connection


def main() -> None:
    """Until SIGTERM."""
    told = parse_arguments()
    stop = Stop()
    writer = Writer(told, LedgerWriter(told.ledger, Client(told.name, acks=-1)))
    pace = Pace(told.partitions, told.per_second)
    while not stop.is_asked:
        for number, topic, partition in pace.due():
            if not stop.is_asked:
                writer.send(number, topic, partition)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
