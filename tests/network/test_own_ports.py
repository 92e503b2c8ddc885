"""A connection to itself does not count, and a connecting broker takes no other broker's port.

The kernel gives any port of its range to a connection: here one takes the port that it goes to.
Source: network.sockets."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from strandline.base.network import Lane
from strandline.client.wire.transport import TcpTransport
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.network.outgoing import Outgoing
from strandline.network.replies import Replies
from strandline.network.tcp import TcpNetwork

ONE, TWO = BrokerId(1), BrokerId(2)
DEADLINE_S = 60


class FromTheSamePort(socket.socket):
    """A socket whose own port is the one that it is connected to."""

    def connect(self, address: Any, /) -> None:
        self.bind(address)
        super().connect(address)


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = probe.getsockname()[1]
    yield found


class Told:
    """What a connection told its owner."""

    def __init__(self) -> None:
        self.connected = 0
        self.lost = 0
        self.changed = asyncio.Event()

    def on_connected(self, *_: object) -> None:
        self.connected += 1
        self.changed.set()

    def on_lost(self, *_: object) -> None:
        self.lost += 1
        self.changed.set()

    def outgoing(self, port: int) -> Outgoing:
        return Outgoing(
            peer=TWO,
            lane=Lane.CONTROL,
            address=("127.0.0.1", port),
            greeting=b"hello",
            one_way_delay_ms=0,
            read_replies=lambda stream, on_ended: Replies(
                stream,
                peer=TWO,
                lane=Lane.CONTROL,
                cluster="c",
                on_process=lambda _peer, _process: None,
                on_message=lambda _peer, _lane, _message: None,
                on_ended=on_ended,
            ),
            on_connected=self.on_connected,
            on_lost=self.on_lost,
            on_silence=self.on_lost,
        )

    async def until_told(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self.changed.wait()


def test_a_broker_that_met_itself_has_not_met_its_peer_and_leaves_its_port_to_it(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    async def scenario() -> Told:
        told = Told()
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", FromTheSamePort)
            outgoing = told.outgoing(port)
            await told.until_told()
        outgoing.close()
        peer = TcpNetwork(self_id=TWO, cluster="c", host="127.0.0.1", port=port)
        await peer.start()
        peer.stop()
        return told

    told = asyncio.run(scenario())
    assert (told.connected, told.lost) == (0, 1)


def test_the_port_of_a_connection_to_a_peer_is_still_there_for_a_broker() -> None:
    async def scenario() -> None:
        peer = TcpNetwork(self_id=TWO, cluster="c", host="127.0.0.1", port=0)
        await peer.start()
        told = Told()
        outgoing = told.outgoing(peer.port)
        await told.until_told()
        assert told.connected == 1
        assert outgoing._socket is not None
        taken = outgoing._socket.getsockname()[1]
        back = TcpNetwork(self_id=ONE, cluster="c", host="127.0.0.1", port=taken)
        await back.start()
        back.stop()
        outgoing.close()
        peer.stop()

    asyncio.run(scenario())


def test_a_client_that_met_itself_is_refused(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(socket, "socket", FromTheSamePort)
    with pytest.raises(ConnectionRefusedError):
        TcpTransport().connect(Address(host="127.0.0.1", port=port), timeout_ms=1_000)
