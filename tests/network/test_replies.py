"""Replies on the connection of what they answer. Source: docs/decisions/0072-replies.md."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest
from tests.network.tcp_world import DEADLINE_S, ONE, TWO, Recorder, endpoint

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network import incoming
from strandline.network.greeting import WIRE_VERSION
from strandline.network.replies import REPLY_BYTES_MAX
from strandline.network.tcp import TcpNetwork

THREE = 3


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def greeting(
    *, sender: int = TWO, lane: Lane = Lane.CONTROL, cluster: str = "c", process: int = 7
) -> bytes:
    return frame(msgspec.msgpack.encode([WIRE_VERSION, cluster, sender, lane, True, process]))


class Answering(Recorder):
    """Replies to each message with the same message, and one more."""

    def __init__(self, network: TcpNetwork) -> None:
        super().__init__()
        self.network = network
        self.were_queued: list[bool] = []

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        super().on_message(peer, lane, message)
        for parts in ([b"re: ", bytes(message)], [b"and"]):
            self.were_queued.append(self.network.reply(peer, lane, parts))


async def answering() -> tuple[TcpNetwork, Answering]:
    network, _ = await endpoint(TWO)
    answerer = Answering(network)
    network.bind(answerer)
    return network, answerer


def test_replies_arrive_in_order_on_the_lane_of_what_they_answer() -> None:
    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        two, answerer = await answering()
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard.until(lambda: len(heard.connected) == 2)
        for lane in Lane:
            assert one.send(TWO, lane, [b"first"])
            assert one.send(TWO, lane, [bytes(300_000)])
        await heard.until(lambda: len(heard.messages) == 8)
        for lane in Lane:
            replies = [body for _, on, body in heard.messages if on is lane]
            assert replies == [b"re: first", b"and", b"re: " + bytes(300_000), b"and"]
        assert answerer.were_queued == [True] * 8
        assert heard.lost == []
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_without_a_connection_of_the_peer_nothing_is_queued() -> None:
    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        two, heard_by_two = await endpoint(TWO)
        assert not two.reply(ONE, Lane.CONTROL, [b"x"])
        two.set_peer(ONE, "127.0.0.1", one.port)
        await heard_by_two.until(lambda: len(heard_by_two.connected) == 2)
        assert not two.reply(ONE, Lane.CONTROL, [b"its own connection is for sending"])
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard.until(lambda: len(heard.connected) == 2)
        assert one.send(TWO, Lane.CONTROL, [b"hello"])
        await heard_by_two.until(lambda: bool(heard_by_two.messages))
        assert not two.reply(ONE, Lane.CONTROL, [bytes(REPLY_BYTES_MAX + 1)])
        assert two.reply(ONE, Lane.CONTROL, [b"hello"])
        await heard.until(lambda: bool(heard.messages))
        one.remove_peer(TWO)
        assert not one.is_connected(TWO, Lane.CONTROL)
        while two.reply(ONE, Lane.CONTROL, [b"until the end of the connection is found"]):
            await asyncio.sleep(0)
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_an_earlier_release_gets_no_reply_and_loses_no_connection() -> None:
    async def scenario() -> None:
        two, answerer = await answering()
        reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
        writer.write(frame(msgspec.msgpack.encode([WIRE_VERSION, "c", ONE, Lane.BULK])))
        writer.write(frame(b"append"))
        await answerer.until(lambda: len(answerer.were_queued) == 2)
        assert answerer.were_queued == [False, False]
        writer.write(frame(b"more"))
        await answerer.until(lambda: len(answerer.messages) == 2)
        two.stop()
        assert await reader.read() == b""
        writer.close()

    asyncio.run(scenario())


def test_the_first_reply_follows_a_greeting_and_one_pass_leaves_in_one_segment() -> None:
    async def scenario() -> None:
        two, _ = await answering()
        reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
        writer.write(greeting(sender=ONE) + frame(b"a"))
        async with asyncio.timeout(DEADLINE_S):
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            head = msgspec.msgpack.decode(await reader.readexactly(length))
            assert head[:5] == [WIRE_VERSION, "c", TWO, Lane.CONTROL, True]
            assert head[5] > 0
            expected = frame(b"re: a") + frame(b"and")
            assert await reader.readexactly(len(expected)) == expected
            writer.write(frame(b"b"))
            assert await reader.read(1_000) == frame(b"re: b") + frame(b"and")
        writer.close()
        two.stop()

    asyncio.run(scenario())


def test_replies_that_the_peer_does_not_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "REPLIES_QUEUED_BYTES_MAX", 100_000)

    async def scenario() -> None:
        two, heard = await endpoint(TWO)
        reader, writer = await asyncio.open_connection("127.0.0.1", two.port, limit=1)
        writer.write(greeting(sender=ONE) + frame(b"a"))
        await heard.until(lambda: bool(heard.messages))
        sent_bytes = 0
        while two.reply(ONE, Lane.CONTROL, [bytes(50_000)]):
            sent_bytes += 50_000
            await asyncio.sleep(0)
            assert sent_bytes < 500_000_000
        assert not two.reply(ONE, Lane.CONTROL, [b"x"])
        writer.transport.abort()
        assert reader is not None
        two.stop()

    asyncio.run(scenario())


class Peer:
    """A peer by hand: its port, and the connections made to it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.made: list[socket.socket] = []

    async def accept(self) -> tuple[Lane, socket.socket]:
        """The next connection, with the lane that its greeting names."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(DEADLINE_S):
            sock, _ = await loop.sock_accept(self.listener)
            self.made.append(sock)
            (length,) = struct.unpack(">I", await loop.sock_recv(sock, 4))
            head = msgspec.msgpack.decode(await loop.sock_recv(sock, length))
        return Lane(head[3]), sock

    def close(self) -> None:
        for sock in (self.listener, *self.made):
            sock.close()

    async def accept_both(self) -> dict[Lane, socket.socket]:
        return dict([await self.accept(), await self.accept()])


def with_peer(
    scenario: Callable[[TcpNetwork, Recorder, Peer], Awaitable[None]],
) -> None:
    async def run() -> None:
        peer = Peer()
        one, heard = await endpoint(ONE)
        one.set_peer(TWO, "127.0.0.1", peer.port)
        await scenario(one, heard, peer)
        one.stop()
        peer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "start",
    [
        greeting(sender=THREE),
        greeting(cluster="another"),
        greeting(lane=Lane.BULK),
        frame(b"\xff"),
        struct.pack(">I", 1024 * 1024),
    ],
    ids=["another broker", "another cluster", "another lane", "garbage", "long"],
)
def test_replies_of_another_broker_are_refused(
    start: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(one: TcpNetwork, heard: Recorder, peer: Peer) -> None:
        connections = await peer.accept_both()
        connections[Lane.CONTROL].sendall(start + frame(b"m"))
        await heard.until(lambda: (TWO, Lane.CONTROL) in heard.lost)
        assert heard.lost == [(TWO, Lane.CONTROL)]
        assert heard.messages == []
        await peer.accept()

    with_peer(scenario)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def greet(port: int, lane: Lane, process: int) -> asyncio.StreamWriter:
    """The peer connects, and sends a message."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(greeting(lane=lane, process=process) + frame(b"mine"))
    return writer


@pytest.mark.parametrize("lane", list(Lane))
@pytest.mark.parametrize("has_greeted", [True, False])
def test_once_the_next_process_has_greeted_no_reply_of_the_earlier_one_is_delivered(
    lane: Lane, has_greeted: bool
) -> None:
    async def scenario(one: TcpNetwork, heard: Recorder, peer: Peer) -> None:
        connections = await peer.accept_both()
        first = await greet(one.port, Lane.CONTROL, 7)
        await heard.until(lambda: len(heard.messages) == 1)
        if has_greeted:
            for on, connection in connections.items():
                connection.sendall(greeting(lane=on, process=7) + frame(b"early"))
            await heard.until(lambda: len(heard.messages) == 3)
        next_one = await greet(one.port, lane, 8)
        if not has_greeted:
            await heard.until(lambda: len(heard.messages) == 2)
        else:
            await heard.until(lambda: len(heard.lost) == 2)
        for on, connection in connections.items():
            start = b"" if has_greeted else greeting(lane=on, process=7)
            with suppress(ConnectionError):
                connection.sendall(start + frame(b"stale"))
        count = len(heard.messages)
        again = await peer.accept_both()
        for on, connection in again.items():
            connection.sendall(greeting(lane=on, process=8) + frame(b"now"))
        await heard.until(lambda: len(heard.messages) == count + 2)
        bodies = [body for _, _, body in heard.messages]
        assert b"stale" not in bodies
        assert bodies[-2:] == [b"now", b"now"]
        assert sorted(heard.lost) == [(TWO, Lane.CONTROL), (TWO, Lane.BULK)]
        for writer in (first, next_one):
            writer.close()

    with_peer(scenario)


def test_a_greeting_on_a_later_connection_ends_the_one_to_the_earlier_process() -> None:
    async def scenario(one: TcpNetwork, heard: Recorder, peer: Peer) -> None:
        connections = await peer.accept_both()
        for on, connection in connections.items():
            connection.sendall(greeting(lane=on, process=7) + frame(b"early"))
        await heard.until(lambda: len(heard.messages) == 2)
        connections[Lane.CONTROL].close()
        lane, control = await peer.accept()
        assert lane is Lane.CONTROL
        control.sendall(greeting(process=8) + frame(b"now"))
        await heard.until(lambda: (TWO, Lane.BULK) in heard.lost)
        lane, bulk = await peer.accept()
        bulk.sendall(greeting(lane=lane, process=8) + frame(b"now"))
        await heard.until(lambda: len(heard.messages) == 4)
        assert one.is_connected(TWO, Lane.CONTROL) and one.is_connected(TWO, Lane.BULK)

    with_peer(scenario)


def test_a_late_greeting_of_the_earlier_process_lets_none_of_its_replies_in() -> None:
    """Connections that are up go on with the present one after a moment."""

    async def scenario(one: TcpNetwork, heard: Recorder, peer: Peer) -> None:
        stale = await peer.accept_both()
        present = await greet(one.port, Lane.CONTROL, 8)
        await heard.until(lambda: len(heard.messages) == 1)
        late = await greet(one.port, Lane.BULK, 7)
        await heard.until(lambda: len(heard.messages) == 2)
        for on, connection in stale.items():
            with suppress(ConnectionError):
                connection.sendall(greeting(lane=on, process=7) + frame(b"stale"))
        again = await peer.accept_both()
        for on, connection in again.items():
            connection.sendall(greeting(lane=on, process=8) + frame(b"now"))
        await heard.until(lambda: len(heard.messages) == 4)
        assert [body for _, _, body in heard.messages] == [b"mine", b"mine", b"now", b"now"]
        for writer in (present, late):
            writer.close()

    with_peer(scenario)


def test_a_silent_endpoint_replies_nothing_and_reads_no_replies() -> None:
    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        two, heard_by_two = await endpoint(TWO)
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard.until(lambda: len(heard.connected) == 2)
        assert one.send(TWO, Lane.CONTROL, [b"a"])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 1)
        assert two.reply(ONE, Lane.CONTROL, [b"queued"])
        two.silence(is_silent=True)
        assert not two.reply(ONE, Lane.CONTROL, [b"silent"])
        two.silence(is_silent=False)
        await heard.until(lambda: len(heard.connected) == 4)
        assert one.send(TWO, Lane.CONTROL, [b"b"])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 2)
        one.silence(is_silent=True)
        two.reply(ONE, Lane.CONTROL, [b"unread"])
        one.silence(is_silent=False)
        await heard.until(lambda: len(heard.connected) == 6)
        assert one.send(TWO, Lane.CONTROL, [b"c"])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 3)
        assert two.reply(ONE, Lane.CONTROL, [b"heard"])
        await heard.until(lambda: bool(heard.messages))
        assert [body for _, _, body in heard.messages] == [b"heard"]
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_renewed_connections_carry_messages_and_replies() -> None:
    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        two, heard_by_two = await endpoint(TWO)
        one.renew(TWO)  # There is none.
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard.until(lambda: len(heard.connected) == 2)
        one.renew(TWO)
        assert not any(one.is_connected(TWO, lane) for lane in Lane)
        await heard.until(lambda: len(heard.connected) == 4)
        assert sorted(heard.lost) == [(TWO, lane) for lane in Lane]
        for lane in Lane:
            assert one.send(TWO, lane, [b"question"])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 2)
        for lane in Lane:
            assert two.reply(ONE, lane, [b"answer"])
        await heard.until(lambda: len(heard.messages) == 2)
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_an_injected_delay_delays_replies() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        one, heard = await endpoint(ONE)
        two = TcpNetwork(
            self_id=TWO, cluster="c", host="127.0.0.1", port=0, one_way_delay_ms={ONE: 30.0}
        )
        answerer = Answering(two)
        two.bind(answerer)
        await two.start()
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard.until(lambda: len(heard.connected) == 2)
        sent_at = loop.time()
        assert one.send(TWO, Lane.BULK, [b"a"])
        await heard.until(lambda: len(heard.messages) == 2)
        assert loop.time() - sent_at >= 0.029
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_a_reply_that_breaks_its_receiver_costs_one_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Recorder):
        def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
            super().on_message(peer, lane, message)
            raise AssertionError("a bug")

    async def scenario() -> None:
        one, _ = await endpoint(ONE)
        heard = Broken()
        one.bind(heard)
        two, _ = await answering()
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard.until(lambda: len(heard.connected) == 2)
        assert one.send(TWO, Lane.CONTROL, [b"a"])
        await heard.until(lambda: (TWO, Lane.CONTROL) in heard.lost)
        assert [body for _, _, body in heard.messages] == [b"re: a"]
        await heard.until(lambda: len(heard.connected) == 3)
        one.stop()
        two.stop()

    asyncio.run(scenario())
    assert "could not be dealt with" in caplog.text
