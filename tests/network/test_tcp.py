"""The real transport: whole messages in order, lanes, losses that are reported. Source:
base.network."""

import asyncio
import errno
import logging
import socket
import struct
from collections.abc import Callable

import msgspec
import pytest
from tests.network.tcp_world import DEADLINE_S, ONE, TWO, Recorder, endpoint

from strandline.base.errors import OperatorError
from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.calls import CallError, Calls
from strandline.network.greeting import WIRE_VERSION
from strandline.network.streams import Stream
from strandline.network.tcp import TcpNetwork


def test_messages_arrive_whole_and_in_order_on_each_lane() -> None:
    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE)
        two, heard_by_two = await endpoint(TWO)
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        handed: list[int] = []
        sizes = [0, 1, 300_000, 5, 2_000_000, 17]
        for number, size in enumerate(sizes):
            body = bytes([number]) * size
            assert one.send(TWO, Lane.BULK, [b"head", body], lambda n=number: handed.append(n))
            assert one.send(TWO, Lane.CONTROL, [bytes([number])])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 2 * len(sizes))
        bulk = [m for _, lane, m in heard_by_two.messages if lane is Lane.BULK]
        control = [m for _, lane, m in heard_by_two.messages if lane is Lane.CONTROL]
        assert bulk == [b"head" + bytes([n]) * s for n, s in enumerate(sizes)]
        assert control == [bytes([n]) for n in range(len(sizes))]
        assert handed == list(range(len(sizes)))
        assert one.backlog_bytes(TWO, Lane.BULK) == 0
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_a_lost_peer_is_reported_and_found_again_on_its_return() -> None:
    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE)
        two, _ = await endpoint(TWO)
        port = two.port
        one.set_peer(TWO, "127.0.0.1", port)
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        two.stop()
        await heard_by_one.until(lambda: not one.is_connected(TWO, Lane.CONTROL))
        assert not one.send(TWO, Lane.CONTROL, [b"nobody listens"])
        again = TcpNetwork(self_id=TWO, cluster="c", host="127.0.0.1", port=port)
        heard_again = Recorder()
        again.bind(heard_again)
        await again.start()
        await heard_by_one.until(lambda: one.is_connected(TWO, Lane.CONTROL))
        assert one.send(TWO, Lane.CONTROL, [b"welcome back"])
        await heard_again.until(lambda: bool(heard_again.messages))
        one.stop()
        again.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("number", "others"),
    [(errno.ETIMEDOUT, [Lane.BULK]), (errno.ECONNREFUSED, [Lane.BULK]), (errno.ECONNRESET, [])],
)
def test_a_connection_that_died_in_silence_takes_the_other_lane_with_it(
    number: int, others: list[Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever swallowed it did the same to the other, which would be found out 10 s after its next
    message."""

    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE)
        two, _ = await endpoint(TWO)
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        writer = one._outgoing[TWO, Lane.CONTROL].writer
        assert writer is not None
        with monkeypatch.context() as patch:
            patch.setattr(writer, "_write_some", end_with(number))
            one.send(TWO, Lane.CONTROL, [b"heartbeat"])
            await heard_by_one.until(lambda: (TWO, Lane.CONTROL) in heard_by_one.lost)
        assert heard_by_one.lost == [(TWO, lane) for lane in (Lane.CONTROL, *others)]
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 3 + len(others))
        assert one.send(TWO, Lane.BULK, [b"entries"])
        one.stop()
        two.stop()

    asyncio.run(scenario())


def end_with(number: int) -> Callable[[Stream], bool]:
    """A write that is refused as a kernel does where that connection ended."""

    def write_some(_stream: Stream) -> bool:
        raise OSError(number, "it has ended")

    return write_some


def test_another_clusters_broker_is_not_listened_to() -> None:
    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE, cluster="blue")
        two, heard_by_two = await endpoint(TWO, cluster="green")
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard_by_one.until(lambda: len(heard_by_one.lost) > 0)
        assert heard_by_two.messages == []
        one.stop()
        two.stop()

    asyncio.run(scenario())


async def is_closed_after(port: int, data: bytes) -> bool:
    """Whether the endpoint ends a connection that sends this."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await reader.read(1) == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


GREETING = msgspec.msgpack.encode([WIRE_VERSION, "c", 2, 0])


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303") + bytes(200),
        frame(b""),
        frame(b"\xff" * 50),
        frame(b"\x95\x01\xa1c\x02\x00" + b"\x91" * 10_000),  # arrays in arrays
        frame(b"\x81" * 10_000),
        frame(msgspec.msgpack.encode([1, "c", 2, 7])),  # no such lane
        struct.pack(">I", 1024 * 1024),  # far too long to be a greeting
    ],
    ids=["http", "tls", "empty", "garbage", "nested", "nested map", "lane", "long"],
)
def test_what_does_not_greet_like_a_broker_is_closed(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        assert await is_closed_after(one.port, data)
        assert heard.messages == []
        one.stop()

    asyncio.run(scenario())
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_of_several_connections_for_one_lane_only_the_latest_is_read() -> None:
    """What is left in the others may be of a process that is gone: a heartbeat of it came after
    those of the next one."""

    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        made = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(3)]
        (_, earliest), (_, earlier), (_, latest) = made
        earlier.write(frame(GREETING) + frame(b"before"))
        await heard.until(lambda: len(heard.messages) == 1)
        latest.write(frame(GREETING) + frame(b"now"))
        await heard.until(lambda: len(heard.messages) == 2)
        earliest.write(frame(GREETING) + frame(b"late"))
        for reader, _ in made[:2]:
            async with asyncio.timeout(DEADLINE_S):
                assert await reader.read() == b""
        latest.write(frame(b"later"))
        await heard.until(lambda: len(heard.messages) == 3)
        assert [message for _, _, message in heard.messages] == [b"before", b"now", b"later"]
        for _, writer in made:
            writer.close()
        one.stop()

    asyncio.run(scenario())


def test_a_message_that_breaks_its_receiver_costs_one_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Recorder):
        def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
            super().on_message(peer, lane, message)
            raise AssertionError("a bug")

    async def scenario() -> None:
        one = TcpNetwork(self_id=ONE, cluster="c", host="127.0.0.1", port=0)
        heard = Broken()
        one.bind(heard)
        await one.start()
        assert await is_closed_after(one.port, frame(GREETING) + frame(b"m") + frame(b"n"))
        assert [message for _, _, message in heard.messages] == [b"m"]
        one.stop()

    asyncio.run(scenario())
    assert "could not be dealt with" in caplog.text


def test_a_host_without_address_is_one_line_for_the_operator() -> None:
    network = TcpNetwork(self_id=ONE, cluster="c", host="no.such.host.invalid", port=1)
    with pytest.raises(OperatorError, match=r"\[rpc\] port: cannot listen on no\.such\.host"):
        asyncio.run(network.start())


def test_a_taken_port_is_one_line_for_the_operator() -> None:
    async def scenario() -> str:
        one, _ = await endpoint(ONE)
        two = TcpNetwork(self_id=TWO, cluster="c", host="127.0.0.1", port=one.port)
        try:
            await two.start()
        except OperatorError as error:
            return str(error)
        finally:
            one.stop()
        raise AssertionError("the port was taken")

    assert "cannot listen on 127.0.0.1" in asyncio.run(scenario())


def test_an_injected_delay_keeps_order_and_delays_every_message() -> None:
    async def scenario() -> None:
        one = TcpNetwork(
            self_id=ONE, cluster="c", host="127.0.0.1", port=0, one_way_delay_ms={TWO: 30.0}
        )
        heard_by_one = Recorder()
        one.bind(heard_by_one)
        await one.start()
        two, heard_by_two = await endpoint(TWO)
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        sent_at = asyncio.get_running_loop().time()
        for number in range(5):
            assert one.send(TWO, Lane.BULK, [bytes([number])])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 5)
        assert asyncio.get_running_loop().time() - sent_at >= 0.029
        assert [m for _, _, m in heard_by_two.messages] == [bytes([n]) for n in range(5)]
        one.stop()
        two.stop()

    asyncio.run(scenario())


def test_a_call_is_answered_or_fails_with_the_reason() -> None:
    async def scenario() -> None:
        ends: dict[BrokerId, Calls] = {}

        def send(to: BrokerId, sender: BrokerId, message: bytes) -> bool:
            if to not in ends:
                return False
            loop = asyncio.get_running_loop()
            loop.call_soon(ends[to].on_message, sender, memoryview(message))
            return True

        one = Calls(lambda to, message: send(to, ONE, message), first_number=1)
        two = Calls(lambda to, message: send(to, TWO, message), first_number=7)
        ends[ONE], ends[TWO] = one, two

        async def echo(sender: BrokerId, payload: bytes) -> bytes:
            return bytes([sender]) + payload

        async def refuse(sender: BrokerId, payload: bytes) -> bytes:
            raise OperatorError("not today")

        asked = asyncio.Event()

        async def never(sender: BrokerId, payload: bytes) -> bytes:
            asked.set()
            await asyncio.Event().wait()
            return b""

        two.register("echo", echo)
        two.register("refuse", refuse)
        two.register("never", never)
        assert await one.call(TWO, "echo", b"x", timeout_ms=5_000) == b"\x01x"
        for method, reason in (("refuse", "not today"), ("gone", "no method 'gone' here")):
            try:
                await one.call(TWO, method, b"", timeout_ms=5_000)
            except CallError as error:
                assert reason in str(error)
            else:
                raise AssertionError(method)
        pending = asyncio.ensure_future(one.call(TWO, "never", b"", timeout_ms=5_000))
        async with asyncio.timeout(DEADLINE_S):
            await asked.wait()
        one.on_peer_lost(TWO)
        for call in (pending, one.call(BrokerId(3), "echo", b"", timeout_ms=5_000)):
            try:
                await call
            except CallError:
                continue
            raise AssertionError("the call had nobody to answer it")
        two.stop()
        one.stop()

    asyncio.run(scenario())


def test_a_silent_endpoint_neither_sends_nor_hears_and_the_others_are_told_nothing() -> None:
    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE)
        two, heard_by_two = await endpoint(TWO)
        one.set_peer(TWO, "127.0.0.1", two.port)
        two.set_peer(ONE, "127.0.0.1", one.port)
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        await heard_by_two.until(lambda: len(heard_by_two.connected) == 2)
        assert one.send(TWO, Lane.CONTROL, [b"first"])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 1)

        two.silence(is_silent=True)
        assert set(heard_by_two.lost) == {(ONE, Lane.CONTROL), (ONE, Lane.BULK)}
        assert not two.send(ONE, Lane.CONTROL, [b"unheard"])
        assert not two.is_connected(ONE, Lane.CONTROL)
        assert one.send(TWO, Lane.CONTROL, [b"unheard"])
        # Somebody who starts meanwhile gets no further than the others.
        three, heard_by_three = await endpoint(BrokerId(3))
        three.set_peer(TWO, "127.0.0.1", two.port)
        await heard_by_three.until(lambda: len(heard_by_three.connected) == 2)
        assert three.send(TWO, Lane.CONTROL, [b"unheard"])
        two.set_peer(BrokerId(3), "127.0.0.1", three.port)
        assert heard_by_one.lost == [] and heard_by_three.lost == []

        two.silence(is_silent=False)
        await heard_by_one.until(
            lambda: len(heard_by_one.lost) == 2 and len(heard_by_one.connected) == 4
        )
        await heard_by_three.until(
            lambda: len(heard_by_three.lost) == 2 and len(heard_by_three.connected) == 4
        )
        await heard_by_two.until(lambda: len(heard_by_two.connected) == 6)
        assert one.send(TWO, Lane.CONTROL, [b"second"])
        await heard_by_two.until(lambda: len(heard_by_two.messages) == 2)
        assert [body for _, _, body in heard_by_two.messages] == [b"first", b"second"]
        assert heard_by_one.messages == [] and heard_by_three.messages == []
        for network in (one, two, three):
            network.stop()

    asyncio.run(scenario())


def test_an_endpoint_may_stop_while_it_is_silent() -> None:
    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE)
        two, _ = await endpoint(TWO)
        one.set_peer(TWO, "127.0.0.1", two.port)
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        two.silence(is_silent=True)
        two.silence(is_silent=True)
        two.stop()
        await heard_by_one.until(lambda: len(heard_by_one.lost) >= 2)
        two.silence(is_silent=False)
        assert not two.is_listening
        one.stop()

    asyncio.run(scenario())


class FullProcess(socket.socket):
    """A listening socket of a process that is out of descriptors, for a while."""

    refused_count = 0
    accepts = False

    def accept(self) -> tuple[socket.socket, object]:
        if self.accepts:
            return super().accept()
        type(self).refused_count += 1
        raise OSError(errno.EMFILE, "Too many open files")


def test_a_broker_without_descriptors_looks_for_peers_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or the loop would do nothing but that, and write a line each time."""
    monkeypatch.setattr("strandline.network.tcp.ACCEPT_PAUSE_MS", 20)

    async def scenario() -> None:
        one, heard_by_one = await endpoint(ONE)
        two, _ = await endpoint(TWO)
        assert two._listener is not None
        full = two._listener = FullProcess(fileno=two._listener.detach())
        one.set_peer(TWO, "127.0.0.1", two.port)
        while not full.refused_count:
            await asyncio.sleep(0)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert full.refused_count < 500
        FullProcess.accepts = True
        await heard_by_one.until(lambda: len(heard_by_one.connected) == 2)
        one.stop()
        two.stop()

    asyncio.run(scenario())
