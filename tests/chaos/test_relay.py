"""The relay: what reaches whom, and when."""

import json
import socket
from collections.abc import Iterator

import pytest
from chaos.relay import HEADER_BYTES, MS, Relay

ADDRESSES = [socket.inet_aton(f"198.18.0.{number}") for number in (1, 2, 3)]
CALM = {"delay_ms": 0, "loss": 0.0, "is_cut": False, "jitter_ms": 0}


class Stage:
    """A relay between three hosts, and a clock that stands still."""

    def __init__(self) -> None:
        self.now_ns = 0
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in ADDRESSES]
        self._sockets = [one for pair in pairs for one in pair]
        for one in self._sockets:
            one.setblocking(False)
        self._hosts = [pair[0] for pair in pairs]
        self.relay = Relay([pair[1].fileno() for pair in pairs], ADDRESSES)

    def set(self, source: int, target: int, **state: object) -> None:
        values = {**CALM, **state}
        self.relay.configure(json.dumps([[source, target, *values.values()]]))

    def send(self, source: int, target: int, body: bytes) -> None:
        ip = bytes([0x45]) + bytes(15) + ADDRESSES[target]
        self._hosts[source].send(bytes(HEADER_BYTES) + ip + body)
        self.relay.take(source)

    def receive(self, target: int) -> list[bytes]:
        found = []
        while True:
            try:
                found.append(self._hosts[target].recv(100)[HEADER_BYTES + 20 :])
            except BlockingIOError:
                return found

    def pass_ms(self, milliseconds: int) -> float | None:
        self.now_ns += milliseconds * MS
        return self.relay.deliver()

    def close(self) -> None:
        for one in self._sockets:
            one.close()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage()
    monkeypatch.setattr("chaos.relay.time.monotonic_ns", lambda: stage.now_ns)
    yield stage
    stage.close()


def test_a_packet_reaches_its_host_after_the_delay_of_its_link(stage: Stage) -> None:
    stage.set(0, 1, delay_ms=40)
    stage.send(0, 1, b"a")
    assert stage.pass_ms(39) == pytest.approx(0.001)
    assert stage.receive(1) == []
    assert stage.pass_ms(1) is None
    assert stage.receive(1) == [b"a"]
    assert stage.receive(2) == []


def test_jitter_varies_the_delay_and_changes_no_order(stage: Stage) -> None:
    stage.set(0, 1, delay_ms=40, jitter_ms=20)
    sent = [b"%d" % number for number in range(9)]
    for one in sent:
        stage.send(0, 1, one)
    stage.pass_ms(29)
    assert stage.receive(1) == []
    found = []
    for _ in range(21):
        stage.pass_ms(1)
        found += stage.receive(1)
    assert found == sent


def test_no_packet_overtakes_another_on_its_link(stage: Stage) -> None:
    stage.set(0, 1, delay_ms=400)
    stage.send(0, 1, b"first")
    stage.set(0, 1, delay_ms=1)
    stage.send(0, 1, b"second")
    stage.send(0, 2, b"another link")
    stage.pass_ms(10)
    assert (stage.receive(1), stage.receive(2)) == ([], [b"another link"])
    stage.pass_ms(390)
    assert stage.receive(1) == [b"first", b"second"]


def test_a_cut_takes_what_is_under_way_and_leaves_the_way_back(stage: Stage) -> None:
    stage.set(0, 1, delay_ms=40)
    stage.send(0, 1, b"under way")
    stage.set(0, 1, delay_ms=40, is_cut=True)
    stage.send(0, 1, b"lost")
    stage.send(1, 0, b"back")
    stage.pass_ms(40)
    assert (stage.receive(1), stage.receive(0)) == ([], [b"back"])
    stage.set(0, 1)
    stage.send(0, 1, b"healed")
    stage.pass_ms(0)
    assert stage.receive(1) == [b"healed"]


def test_loss_takes_its_share(stage: Stage) -> None:
    stage.set(0, 1, loss=0.5)
    for _ in range(200):
        stage.send(0, 1, b"x")
        stage.pass_ms(0)
    assert 50 < len(stage.receive(1)) < 150


def test_a_packet_to_nobody_goes_nowhere(stage: Stage) -> None:
    stage._hosts[0].send(bytes(HEADER_BYTES) + bytes([0x45]) + bytes(19))
    stage._hosts[0].send(bytes(HEADER_BYTES) + bytes([0x60]) + bytes(39))
    stage.relay.take(0)
    assert stage.pass_ms(0) is None
