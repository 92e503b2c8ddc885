"""A produce load from raw sockets: the same batch again and again, with many requests in flight.

Why:    a Kafka client spends more time on a record than the broker does; to measure one broker, the
        load must cost next to nothing. Batches are built once, checksummed, and sent as
        they are.
How:    `python bench/load.py --bootstrap HOST:PORT --topic T --batch-bytes 1048576 --seconds 5`.
        Works against any Kafka broker. Prints one JSON object; with --pid, also the CPU seconds of
        these processes.
"""

import argparse
import json
import os
import selectors
import socket
import struct
import time
from pathlib import Path

from strandline.protocol.codec import decode, encode
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.records.codec import CODEC_NAMES
from strandline.records.record import Record, build_batch

PRODUCE, METADATA = 0, 3
PRODUCE_VERSION, METADATA_VERSION = 7, 8
RECEIVE_BYTES = 1 << 20


def request_header(api: int, version: int, correlation: int) -> bytes:
    """Header version 1."""
    return struct.pack(">hhih", api, version, correlation, -1)


def call(sock: socket.socket, api: int, version: int, body: bytes) -> memoryview:
    """One request and its answer, after the correlation id."""
    frame = request_header(api, version, 1) + body
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        received = sock.recv(RECEIVE_BYTES)
        if not received:
            raise ConnectionError("the broker closed the connection")
        data += received
    return memoryview(data)[8:]


def leaders_of(bootstrap: str, topic: str) -> dict[int, tuple[str, int]]:
    """{partition: address of its leader}."""
    host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
    with socket.create_connection((host, int(port))) as sock:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        body = bytes(encode(asked, METADATA_VERSION))
        answer, _ = decode(
            MetadataResponse,
            call(sock, METADATA, METADATA_VERSION, body),
            0,
            METADATA_VERSION,
        )
    brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    return {p.partition_index: brokers[p.leader_id] for p in answer.topics[0].partitions}


def produce_frame(topic: str, partition: int, *, batch: bytes, acks: int) -> bytes:
    """A whole Produce request of version 7, length included."""
    name = topic.encode()
    body = struct.pack(">hhi", -1, acks, 30_000) + struct.pack(">ih", 1, len(name)) + name
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    frame = request_header(PRODUCE, PRODUCE_VERSION, 7) + body
    return struct.pack(">i", len(frame)) + frame


def make_batch(batch_bytes: int, record_bytes: int, codec: int = 0) -> bytes:
    """A batch of records of about this size, uncompressed; half of each value is random."""
    count = max(1, batch_bytes // (record_bytes + 8))
    half = record_bytes // 2
    now = int(time.time() * 1000)
    return bytes(
        build_batch(
            [
                Record(offset_delta=n, timestamp=now, value=os.urandom(half) + bytes(half))
                for n in range(count)
            ],
            codec=codec,
        )
    )


class Connection:
    """One connection with a fixed number of requests in flight."""

    def __init__(self, address: tuple[str, int], frame: bytes, in_flight: int) -> None:
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self._frame = frame
        self._to_send = in_flight
        self._sent = 0
        self._received = b""
        self.answered = 0
        self.errors: dict[int, int] = {}

    @property
    def wants_to_send(self) -> bool:
        """Whether there is a request, or the rest of one, to send."""
        return self._to_send > 0

    def send(self) -> None:
        """Send as much as the socket takes."""
        view = memoryview(self._frame)
        try:
            while self._to_send:
                self._sent += self.sock.send(view[self._sent :])
                if self._sent == len(view):
                    self._sent = 0
                    self._to_send -= 1
        except BlockingIOError:
            return

    def receive(self, *, go_on: bool) -> None:
        """Take answers in; each makes room for another request."""
        try:
            data = self.sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError("the broker closed the connection")
        data = self._received + data
        position = 0
        while len(data) - position >= 4:
            (length,) = struct.unpack_from(">i", data, position)
            if len(data) - position - 4 < length:
                break
            self._count(data, position + 8)
            position += 4 + length
            if go_on:
                self._to_send += 1
        self._received = data[position:]

    def _count(self, data: bytes, position: int) -> None:
        (name_length,) = struct.unpack_from(">h", data, position + 4)
        (error,) = struct.unpack_from(">h", data, position + 4 + 2 + name_length + 4 + 4)
        if error:
            self.errors[error] = self.errors.get(error, 0) + 1
        else:
            self.answered += 1


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of these processes so far."""
    tick = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / tick


def run(arguments: argparse.Namespace) -> dict[str, object]:
    """Load for the given time; what was acknowledged."""
    leaders = leaders_of(arguments.bootstrap, arguments.topic)
    codec = CODEC_NAMES.index(arguments.codec)
    batch = make_batch(arguments.batch_bytes, arguments.record_bytes, codec)
    connections = []
    for number in range(arguments.connections):
        partition = number % len(leaders)
        frame = produce_frame(arguments.topic, partition, batch=batch, acks=arguments.acks)
        connections.append(Connection(leaders[partition], frame, arguments.in_flight))
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
    cpu_before = cpu_seconds(arguments.pid)
    begin = time.monotonic()
    end = begin + arguments.seconds
    while time.monotonic() < end:
        for key, events in selector.select(0.1):
            connection = key.data
            if events & selectors.EVENT_READ:
                connection.receive(go_on=True)
            connection.send()
            wanted = selectors.EVENT_READ
            if connection.wants_to_send:
                wanted |= selectors.EVENT_WRITE
            if wanted != key.events:
                selector.modify(connection.sock, wanted, connection)
    elapsed = time.monotonic() - begin
    cpu = cpu_seconds(arguments.pid) - cpu_before
    answered = sum(connection.answered for connection in connections)
    errors: dict[int, int] = {}
    for connection in connections:
        for code, count in connection.errors.items():
            errors[code] = errors.get(code, 0) + count
    megabytes = answered * len(batch) / 1e6
    result: dict[str, object] = {
        "batch_bytes": len(batch),
        "acks": arguments.acks,
        "requests_per_s": round(answered / elapsed, 1),
        "mb_per_s": round(megabytes / elapsed, 1),
        "errors": errors,
    }
    if arguments.pid:
        result["broker_cpu_s"] = round(cpu, 2)
        result["broker_cores"] = round(cpu / elapsed, 2)
        result["cpu_s_per_gb"] = round(cpu / (megabytes / 1e3), 2) if megabytes else None
        result["cpu_us_per_request"] = round(cpu / answered * 1e6) if answered else None
        result["mb_per_core_s"] = round(megabytes / cpu, 1) if cpu else None
    return result


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--batch-bytes", type=int, default=16_384)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--codec", choices=CODEC_NAMES, default="none")
    parser.add_argument("--acks", type=int, default=1)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--pid", type=int, action="append", default=[], help="a broker's process")
    print(json.dumps(run(parser.parse_args())))


if __name__ == "__main__":
    main()
