"""The next process of a peer takes its earlier one's place; a second broker of its id does not.
Source: docs/decisions/0072-replies.md."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import pytest
from tests.network.tcp_world import DEADLINE_S, ONE, TWO, Recorder, endpoint

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.peer_processes import ASK_S, PeerProcesses
from strandline.network.tcp import TcpNetwork

FIRST, SECOND, THIRD = 7, 8, 9
HOST, ADDRESS = "10.0.0.2", ("node-1", 33_102)


class Connection:
    """What this broker opened to a peer. `process`: who has replied on it; 0: nobody yet."""

    address = ADDRESS

    def __init__(self) -> None:
        self.process = 0
        self.renewed_count = 0

    @property
    def is_answered(self) -> bool:
        return self.process != 0

    def expect_process(self, process: int) -> None:
        if self.process not in (0, process):
            self.renew()

    def renew(self) -> None:
        self.process = 0
        self.renewed_count += 1


class World:
    """One broker, its connection to a peer, and a clock."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.connection = Connection()
        self.processes = PeerProcesses(lambda _: [self.connection], lambda: self.now_s)

    def admits(self, process: int) -> bool:
        return self.processes.admit(TWO, process, HOST)

    def reply(self, process: int) -> None:
        self.connection.process = process
        self.processes.on_replied(TWO, process)

    def lose(self) -> None:
        self.connection.process = 0
        self.processes.on_lost(TWO)


@pytest.fixture
def world() -> World:
    """The first process is known, and answers."""
    made = World()
    assert made.admits(FIRST)
    made.reply(FIRST)
    return made


def test_a_second_broker_stays_out_while_the_first_one_answers(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert not world.admits(SECOND)
    assert world.connection.renewed_count == 1
    world.reply(FIRST)
    for _ in range(5):
        assert not world.admits(SECOND)
        assert world.admits(FIRST)
    assert world.connection.is_answered and world.connection.renewed_count == 1
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert told == [
        "two brokers have the id 2: the one at node-1:33102 answers, and the one on host 10.0.0.2 "
        "cannot join: give it another id"
    ]


def test_each_other_process_asks_anew(world: World) -> None:
    assert not world.admits(SECOND)
    world.reply(FIRST)
    assert not world.admits(THIRD)
    assert world.connection.renewed_count == 2


def test_a_newcomer_waits_while_nobody_has_greeted_again(world: World) -> None:
    assert not world.admits(SECOND)
    assert not world.admits(SECOND)
    world.now_s += ASK_S
    assert world.admits(SECOND)


def test_a_newcomer_is_admitted_once_the_first_process_is_not_there(world: World) -> None:
    assert not world.admits(SECOND)
    world.lose()
    assert world.admits(SECOND)


def test_the_next_process_at_the_same_address_is_no_second_broker(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert not world.admits(SECOND)
    world.reply(SECOND)
    assert world.admits(SECOND)
    assert caplog.records == []


def test_a_refused_process_is_admitted_once_the_first_one_has_gone(world: World) -> None:
    assert not world.admits(SECOND)
    world.reply(FIRST)
    world.lose()
    assert world.admits(SECOND)


def test_a_process_that_never_replies_keeps_nobody_out() -> None:
    """As those of earlier releases, and as one that has just begun."""
    world = World()
    assert world.admits(FIRST)
    assert world.admits(SECOND)


def test_a_peer_that_is_forgotten_may_come_with_any_process(world: World) -> None:
    world.processes.forget(TWO)
    assert world.admits(SECOND)


class Replying(Recorder):
    """Replies to each message."""

    def __init__(self, network: TcpNetwork) -> None:
        super().__init__()
        self.network = network

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        super().on_message(peer, lane, message)
        self.network.reply(peer, lane, [b"re: ", bytes(message)])


async def broker_two() -> tuple[TcpNetwork, Replying]:
    network, _ = await endpoint(TWO)
    replying = Replying(network)
    network.bind(replying)
    return network, replying


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_second_broker_on_the_network_is_heard_only_after_the_first_one_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        one, heard = await endpoint(ONE)
        first, _ = await broker_two()
        one.set_peer(TWO, "127.0.0.1", first.port)
        first.set_peer(ONE, "127.0.0.1", one.port)
        await until(lambda: one.send(TWO, Lane.CONTROL, [b"hello"]))
        await until(lambda: first.send(ONE, Lane.CONTROL, [b"of the first"]))
        await heard.until(lambda: len(heard.messages) == 2)
        heard.messages.clear()

        second, _ = await broker_two()
        second.set_peer(ONE, "127.0.0.1", one.port)

        def both_speak() -> None:
            one.send(TWO, Lane.CONTROL, [b"hello"])
            second.send(ONE, Lane.CONTROL, [b"of the second"])

        def heard_so_often(count: int) -> bool:
            return len(heard.messages) >= count

        def is_told() -> bool:
            both_speak()
            return any("two brokers have the id 2" in one.getMessage() for one in caplog.records)

        await until(is_told)
        heard.messages.clear()
        for count in range(1, 100):
            both_speak()
            await heard.until(partial(heard_so_often, count))
        assert one.is_connected(TWO, Lane.CONTROL)
        assert {body for _, _, body in heard.messages} == {b"re: hello"}

        first.stop()
        await until(
            lambda: (
                second.send(ONE, Lane.CONTROL, [b"of the second"])
                and (TWO, Lane.CONTROL, b"of the second") in heard.messages
            )
        )
        second.stop()
        one.stop()

    asyncio.run(scenario())
