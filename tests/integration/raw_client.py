"""A client that sends whatever it is told to, byte for byte; and brokers, seen from outside."""

import os
import select
import socket
import struct
from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from tests.integration.conftest import DevCluster, wait_until

from strandline.protocol.codec import decode
from strandline.protocol.headers import (
    decode_response_header,
    encode_request,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.table import Message

TIMEOUT_S = 60
TCP_ESTABLISHED, TCP_CLOSE_WAIT = "01", "08"
"""As /proc/net/tcp writes them."""

R = TypeVar("R", bound=Message)


class RawClient:
    """One connection to one port."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._sent = 0

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """Its own."""
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Bytes as they are; that the broker has hung up already is no failure."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            pass

    def send_some(self, data: bytes | memoryview, *, within_s: float) -> int:
        """How much of it the socket takes; 0 where it takes nothing for so long. Raises
        ConnectionError where the broker has hung up."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.send(data)
        except TimeoutError:
            return 0
        finally:
            self._socket.settimeout(TIMEOUT_S)

    @property
    def has_answer(self) -> bool:
        """Whether something has come that was not read yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def send_frame(self, frame: bytes) -> None:
        self.send(struct.pack(">i", len(frame)) + frame)

    def is_closed(self) -> bool:
        """Wait until the broker closes, or answers, which is a failure."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def request(self, request: Message, version: int) -> None:
        """Send a request whose answer is fetched later, or never."""
        self._sent += 1
        self.send_frame(frame_of(request, version, self._sent))

    def receive(self, answer: type[R], version: int) -> R:
        """The answer to the latest request."""
        data = self.receive_frame()
        correlation, position = decode_response_header(data, answer.API_KEY, version)
        assert correlation == self._sent
        message, _ = decode(answer, data, position, version)
        return message

    def receive_any(self, answer: type[R], version: int) -> R:
        """The next answer, whichever request it belongs to."""
        data = self.receive_frame()
        _, position = decode_response_header(data, answer.API_KEY, version)
        message, _ = decode(answer, data, position, version)
        return message

    def ask(self, request: Message, answer: type[R], version: int) -> R:
        self.request(request, version)
        return self.receive(answer, version)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return bytes(data)


def frame_of(request: Message, version: int, correlation: int = 1) -> bytes:
    """A request without the length in front."""
    return bytes(encode_request(request, version, correlation_id=correlation, client_id="raw"))


class Broker:
    """One broker of a cluster, as it looks from outside."""

    def __init__(self, cluster: DevCluster, number: int) -> None:
        self._description = cluster.brokers[number]
        self._pid_file = cluster.directory / f"broker-{number}" / "broker.pid"
        self.number = number
        self.port = int(str(self._description["address"]).rpartition(":")[2])
        self.data = Path(str(self._description["data_directory"]))
        self.log = Path(str(self._description["log_file"]))
        self._log_start = self.log.stat().st_size

    @property
    def rpc_port(self) -> int:
        config = Path(str(self._description["config_file"])).read_text()
        section = config.partition("[rpc]")[2].partition("[")[0]
        return int(section.partition("port = ")[2].split()[0])

    def connect(self) -> RawClient:
        return RawClient(self.port)

    def memory_bytes(self) -> int:
        """What the process holds of the machine's memory now."""
        return int(self._process("statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def signal(self, number: int) -> None:
        """As `kill` would."""
        os.kill(self._pid(), number)

    @property
    def is_stopped(self) -> bool:
        """Whether the process stands still, by a SIGSTOP."""
        return self._process("stat").rpartition(")")[2].split()[0] == "T"

    def connections_from(self, ports: Collection[int]) -> int:
        """How many of the connections from these ports it holds: open, or left by the client.

        The table is read piece by piece while it changes and may show a connection twice.
        """
        held = set()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, here, there, state = line.split()[:4]
            port = int(there.partition(":")[2], 16)
            if (
                int(here.partition(":")[2], 16) == self.port
                and port in ports
                and state in (TCP_ESTABLISHED, TCP_CLOSE_WAIT)
            ):
                held.add(port)
        return len(held)

    def unread_bytes(self, port: int) -> int:
        """Of what a client has sent from this port: what is still in the sockets of both."""
        ways = {(port, self.port): 0, (self.port, port): 1}
        unread = 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, here, there, _, queues = line.split()[:5]
            way = tuple(int(one.partition(":")[2], 16) for one in (here, there))
            if way in ways:
                unread += int(queues.split(":")[ways[way]], 16)
        return unread

    def said(self) -> list[str]:
        """The lines in its log since this object was made."""
        return self.log.read_bytes()[self._log_start :].decode().splitlines()

    def complaints(self) -> list[str]:
        """Those of them that are errors."""
        return [line for line in self.said() if "level=error" in line or "Traceback" in line]

    def _pid(self) -> int:
        text = self._pid_file.read_text()
        return int(text.partition('"pid": ')[2].partition(",")[0])

    def _process(self, name: str) -> str:
        return Path(f"/proc/{self._pid()}/{name}").read_text()


def brokers_of(cluster: DevCluster) -> list[Broker]:
    return [Broker(cluster, number) for number in sorted(cluster.brokers)]


def leader_of(cluster: DevCluster, topic: str, partition: int = 0) -> Broker:
    """The broker that leads a partition, once there is one."""
    found: list[Broker] = []

    def is_led() -> bool:
        leader = leader_if_any(cluster, topic, partition)
        found.extend([] if leader is None else [leader])
        return bool(found)

    wait_until(is_led, what=f"a leader of {topic}-{partition}")
    return found[0]


def leader_if_any(cluster: DevCluster, topic: str, partition: int = 0) -> Broker | None:
    """The broker that leads a partition, as the first broker says; None if that knows of none."""
    first = Broker(cluster, min(cluster.brokers))
    with first.connect() as client:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        described = client.ask(request, MetadataResponse, 9).topics[0]
    leaders = {one.partition_index: one.leader_id for one in described.partitions}
    leader = leaders.get(partition, -1)
    return None if leader < 0 else Broker(cluster, leader)
