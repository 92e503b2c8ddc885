"""What TLS costs a broker: MB for each CPU second, plain and with TLS, in both directions.

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
from pathlib import Path

import trustme

from bench.clusters import STRANDLINE, memory_mb
from bench.load import cpu_seconds, make_batch, produce_frame, request_header
from bench.paced import create_topic
from strandline.protocol.codec import encode
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

PLAIN_PORT, TLS_PORT, MUTUAL_PORT, RPC_PORT = 29_092, 29_093, 29_094, 29_095
WRITTEN, READ, IN_FLIGHT = "written", "read", 8
SECONDS, START_S = 6, 60
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
    """Measure all. Each figure is of a second round."""
    with broker(work) as (pid, doors):
        bootstrap = f"127.0.0.1:{PLAIN_PORT}"
        configs = {"segment.bytes": str(64 * MIB), "retention.bytes": str(128 * MIB)}
        for name, own in ((WRITTEN, configs), (READ, {})):
            create_topic(bootstrap, name, partitions=1, replicas=1, configs=own)
        for batch_bytes in (16_384, 1_000_000):
            batch = make_batch(batch_bytes, 1_000)
            frame = produce_frame(WRITTEN, 0, batch=batch, acks=1)
            for door in doors:
                ask(door, frame, pid, sent_bytes=len(batch))
                figures = ask(door, frame, pid, sent_bytes=len(batch))
                say(step="produce", batch_bytes=batch_bytes, listener=door.name, **figures)
        frame = produce_frame(READ, 0, batch=make_batch(1_000_000, 1_000), acks=1)
        ask(doors[0], frame, pid, sent_bytes=MIB, count=16)
        for door in doors:
            ask(door, fetch_frame(), pid)
            say(step="fetch", listener=door.name, **ask(door, fetch_frame(), pid))
        handshakes(doors[-1], pid, say)
        for door in doors:
            idle(door, pid, say)


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
def broker(work: Path) -> Iterator[tuple[int, list[Door]]]:
    """A broker with a plain listener, one with TLS and one that wants certificates: its process,
    and the ways in."""
    work.mkdir(parents=True)
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    client = authority.issue_cert("client.example", key_type=trustme.KeyType.ECDSA)
    authority.cert_pem.write_to_path(str(work / "ca.pem"))
    server.cert_chain_pems[0].write_to_path(str(work / "server.pem"))
    server.private_key_pem.write_to_path(str(work / "server.key"))
    files = (
        f'protocol = "SSL"\ncertificate = "{work}/server.pem"\nprivate_key = "{work}/server.key"\n'
        f'trust = "{work}/ca.pem"\n'
    )
    (work / "broker.toml").write_text(
        f'[broker]\nid = 1\ndata_directory = "{work}/data"\n'
        f'[cluster]\nid = "tls"\nseeds = ["1@127.0.0.1:{RPC_PORT}"]\n[rpc]\nport = {RPC_PORT}\n'
        "[storage]\nretention_check_interval_ms = 100\n"
        f'[[listener]]\nname = "PLAIN"\nbind = "127.0.0.1:{PLAIN_PORT}"\n'
        f'[[listener]]\nname = "TLS"\nbind = "127.0.0.1:{TLS_PORT}"\n{files}'
        f'[[listener]]\nname = "MUTUAL"\nbind = "127.0.0.1:{MUTUAL_PORT}"\n{files}'
        'client_certificates = "required"\n'
    )
    plain_context = ssl.create_default_context(cafile=str(work / "ca.pem"))
    mutual_context = ssl.create_default_context(cafile=str(work / "ca.pem"))
    client.configure_cert(mutual_context)
    doors = [
        Door("PLAIN", PLAIN_PORT),
        Door("TLS", TLS_PORT, plain_context),
        Door("MUTUAL", MUTUAL_PORT, mutual_context),
    ]
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
    door: Door, frame: bytes, pid: int, *, sent_bytes: int = 0, count: int = 1 << 62
) -> dict[str, float]:
    """Ask for SECONDS with IN_FLIGHT requests; `sent_bytes`: of payload in a request, 0 to count
    the answers; `count`: of requests, at the most."""
    with door.connect() as sock:
        for _ in range(IN_FLIGHT):
            sock.sendall(frame)
        buffer = bytearray(4 * MIB)
        answers, payload = 0, 0
        before, begin = cpu_seconds([pid]), time.monotonic()
        while answers < count and time.monotonic() - begin < SECONDS:
            size = receive(sock, buffer)
            answers += 1
            payload += sent_bytes or size
            sock.sendall(frame)
        cpu = max(cpu_seconds([pid]) - before, 1e-9)
    return {
        "mb_per_cpu_s": round(payload / 1e6 / cpu, 1),
        "cpu_s_per_gb": round(cpu / (payload / 1e9), 2),
        "cpu_us_per_request": round(cpu / answers * 1e6),
        "mb_per_s": round(payload / 1e6 / SECONDS, 1),
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


def fetch_frame() -> bytes:
    """A Fetch request of 1 MB from the beginning, length included."""
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=MIB,
        topics=[FetchTopic(READ, partitions=[FetchPartition(0, partition_max_bytes=MIB)])],
    )
    frame = request_header(FETCH, FETCH_VERSION, 1) + bytes(encode(request, FETCH_VERSION))
    return struct.pack(">i", len(frame)) + frame
