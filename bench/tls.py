"""What TLS costs a broker: MB for each CPU second, plain and with TLS, in both directions, beside
Apache Kafka.

Why:    operators must know how many more cores a closed cluster takes.
How:    One broker with two listeners. A client sends the same Produce request again and again,
        acks=1, then the same Fetch request, with several in flight, through each listener in turn;
        the broker's CPU seconds are those of its process. ECDSA certificates, TLS 1.3.
            `handshakes`: connections with certificates on both sides, one after the other.
            `idle`: memory for each connection that has shaken hands and does nothing.
"""

import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.clusters import STRANDLINE, has_kafka, kafka, memory_mb
from bench.load import cpu_seconds, make_batch, produce_frame, request_header
from bench.paced import create_topic
from strandline.protocol.codec import encode
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.security.authority import Authority

FIRST_PORT = 29_092
"""Of four: plain, TLS, TLS with certificates of clients, between brokers."""
WARM_UP_ROUNDS = 1
"""Rounds that are not counted: Java compiles what is called often."""
WRITTEN, READ, IN_FLIGHT = "written", "read", 8
SECONDS, START_S = 10, 60
HANDSHAKES, IDLE = 500, 1_000
FETCH, FETCH_VERSION = 1, 11
MIB = 1 << 20
Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Door:
    """How a client comes in: its name, the port, and TLS if it has any."""

    name: str
    port: int
    context: ssl.SSLContext | None = None

    def connect(self) -> socket.socket:
        """A blocking connection."""
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context is None:
            return sock
        return self.context.wrap_socket(sock, server_hostname="localhost")


def run(work: Path, say: Say) -> None:
    """Measure all, beside Kafka where it can be started."""
    with broker(work / "strandline") as (pid, doors):
        measure("strandline", pid, doors, say)
        handshakes(doors[-1], pid, say)
        for door in doors:
            idle(door, pid, say)
    if has_kafka():
        with kafka_broker(work / "kafka") as (pid, doors):
            measure("kafka", pid, doors, say)
            handshakes(doors[-1], pid, partial(say, product="kafka"))


def measure(product: str, pid: int, doors: list[Door], say: Say) -> None:
    """Producing in two sizes of batches, then reading."""
    bootstrap = f"127.0.0.1:{doors[0].port}"
    configs = {"segment.bytes": str(64 * MIB), "retention.bytes": str(128 * MIB)}
    for name, own in ((WRITTEN, configs), (READ, {})):
        create_topic(bootstrap, name, partitions=1, replicas=1, configs=own)
    for batch_bytes in (16_384, 1_000_000):
        batch = make_batch(batch_bytes, 1_000)
        frame = produce_frame(WRITTEN, 0, batch=batch, acks=1)
        for door in doors:
            for _ in range(WARM_UP_ROUNDS):
                ask(door, frame, pid, sent_bytes=len(batch))
            figures = ask(door, frame, pid, sent_bytes=len(batch))
            told = {"product": product, "batch_bytes": batch_bytes, "listener": door.name}
            say(step="produce", **told, **figures)
    frame = produce_frame(READ, 0, batch=make_batch(1_000_000, 1_000), acks=1)
    ask(doors[0], frame, pid, sent_bytes=MIB, count=16)
    for door in doors:
        for _ in range(WARM_UP_ROUNDS):
            ask(door, fetch_frame(), pid)
        figures = ask(door, fetch_frame(), pid)
        say(step="fetch", product=product, listener=door.name, **figures)


def handshakes(door: Door, pid: int, say: Say) -> None:
    """Connections one after the other."""
    before = cpu_seconds([pid])
    for _ in range(HANDSHAKES):
        door.connect().close()
    cpu = cpu_seconds([pid]) - before
    say(step="handshakes", listener=door.name, ms_each=round(cpu / HANDSHAKES * 1e3, 2))


def idle(door: Door, pid: int, say: Say) -> None:
    """Connections that do nothing."""
    before = memory_mb(pid)
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(door.connect())
        time.sleep(1)
        kib = (memory_mb(pid) - before) * 1024 / IDLE
        say(step="idle", listener=door.name, connections=IDLE, kib_each=round(kib, 1))


@contextmanager
def broker(
    work: Path, extra: str = "", *, first_port: int = FIRST_PORT
) -> Iterator[tuple[int, list[Door]]]:
    """A broker with a plain listener, one with TLS and one that wants certificates: its process,
    and the ways in. `extra`: lines of its configuration."""
    plain, tls, mutual, rpc = range(first_port, first_port + 4)
    authority = Authority(work)
    server = authority.issue("server")
    files = (
        f'protocol = "SSL"\ncertificate = "{server.certificate}"\nprivate_key = "{server.key}"\n'
        f'trust = "{server.trust}"\n'
    )
    (work / "broker.toml").write_text(
        f'[broker]\nid = 1\ndata_directory = "{work}/data"\n'
        f'[cluster]\nid = "tls"\nseeds = ["1@127.0.0.1:{rpc}"]\n[rpc]\nport = {rpc}\n'
        "[storage]\nretention_check_interval_ms = 100\n"
        f'[[listener]]\nname = "PLAIN"\nbind = "127.0.0.1:{plain}"\n'
        f'[[listener]]\nname = "TLS"\nbind = "127.0.0.1:{tls}"\n{files}'
        f'[[listener]]\nname = "MUTUAL"\nbind = "127.0.0.1:{mutual}"\n{files}'
        f'client_certificates = "required"\n{extra}'
    )
    doors = ways_in(authority, first_port)
    with (
        open(work / "broker.log", "wb") as log,
        subprocess.Popen(
            [STRANDLINE, "serve", "--config", str(work / "broker.toml")], stdout=log, stderr=log
        ) as process,
    ):
        try:
            wait_for(doors[0])
            yield process.pid, doors
        finally:
            process.terminate()


@contextmanager
def kafka_broker(work: Path) -> Iterator[tuple[int, list[Door]]]:
    """Apache Kafka with the same three listeners."""
    authority = Authority(work)
    server = authority.issue("server")
    store = work / "keystore.pem"
    store.write_text(server.key.read_text() + server.certificate.read_text())
    names = ("PLAIN", "TLS", "MUTUAL", "CONTROLLER")
    places = [f"{name}://127.0.0.1:{FIRST_PORT + at}" for at, name in enumerate(names)]
    protocols = "PLAIN:PLAINTEXT,TLS:SSL,MUTUAL:SSL,CONTROLLER:PLAINTEXT"
    configs = (
        f"controller.quorum.voters=1@127.0.0.1:{FIRST_PORT + 3}",
        f"listeners={','.join(places)}",
        f"advertised.listeners={','.join(places[:3])}",
        f"listener.security.protocol.map={protocols}",
        "inter.broker.listener.name=PLAIN",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={store}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={server.trust}",
        "listener.name.mutual.ssl.client.auth=required",
        "log.retention.check.interval.ms=1000",
    )
    with kafka(work / "kafka", brokers=1, configs=configs) as cluster:
        doors = ways_in(authority, FIRST_PORT)
        wait_for(doors[0])
        yield cluster.pids[1], doors


def ways_in(authority: Authority, first_port: int) -> list[Door]:
    """Without TLS, with TLS, and with a client's certificate."""
    client = authority.issue("client")
    plain_context = ssl.create_default_context(cafile=str(authority.trust))
    mutual_context = ssl.create_default_context(cafile=str(authority.trust))
    mutual_context.load_cert_chain(client.certificate, client.key)
    return [
        Door("PLAIN", first_port),
        Door("TLS", first_port + 1, plain_context),
        Door("MUTUAL", first_port + 2, mutual_context),
    ]


def wait_for(door: Door) -> None:
    """Wait until a port takes connections."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            door.connect().close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"no broker within {START_S} s")


def ask(
    door: Door,
    frame: bytes,
    pid: int,
    *,
    sent_bytes: int = 0,
    count: int = 1 << 62,
    seconds: float = SECONDS,
) -> dict[str, float]:
    """Ask for so many seconds with IN_FLIGHT requests; `sent_bytes`: of payload in a request, 0 to
    count the answers; `count`: of requests, at the most."""
    with door.connect() as sock:
        for _ in range(IN_FLIGHT):
            sock.sendall(frame)
        buffer = bytearray(4 * MIB)
        answers, payload = 0, 0
        before, begin = cpu_seconds([pid]), time.monotonic()
        while answers < count and time.monotonic() - begin < seconds:
            size = receive(sock, buffer)
            answers += 1
            payload += sent_bytes or size
            sock.sendall(frame)
        cpu = max(cpu_seconds([pid]) - before, 1e-9)
    return {
        "mb_per_cpu_s": round(payload / 1e6 / cpu, 1),
        "cpu_s_per_gb": round(cpu / (payload / 1e9), 2),
        "cpu_us_per_request": round(cpu / answers * 1e6, 1),
        "mb_per_s": round(payload / 1e6 / seconds, 1),
    }


def receive(sock: socket.socket, buffer: bytearray) -> int:
    """Read one answer; its size."""
    (size,) = struct.unpack(">i", read_exactly(sock, buffer, 4))
    read_exactly(sock, buffer, size)
    return int(size)


def read_exactly(sock: socket.socket, buffer: bytearray, size: int) -> memoryview:
    """Fill the beginning of the buffer."""
    view, filled = memoryview(buffer), 0
    while filled < size:
        count = sock.recv_into(view[filled:size])
        if not count:
            raise ConnectionError("the broker closed the connection")
        filled += count
    return view[:size]


def fetch_frame(bytes_max: int = MIB) -> bytes:
    """A Fetch request of so many bytes from the beginning, length included."""
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=bytes_max,
        topics=[FetchTopic(READ, partitions=[FetchPartition(0, partition_max_bytes=bytes_max)])],
    )
    frame = request_header(FETCH, FETCH_VERSION, 1) + bytes(encode(request, FETCH_VERSION))
    return struct.pack(">i", len(frame)) + frame
