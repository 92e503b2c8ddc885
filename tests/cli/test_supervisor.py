"""A supervisor keeps processes running, and ends them together: by hand-made processes and time.

Source: docs/decisions/0071-cores.md."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.storage.storage_world import ManualClock

from strandline.cli.machine.broker_process import BrokerProcess, NoAnswerError
from strandline.cli.machine.entry import main
from strandline.cli.machine.restart_pause import PAUSE_MS_MAX, PAUSE_MS_MIN, RestartPause
from strandline.cli.machine.supervisor import STOP_MS, ProcessState, Supervisor
from strandline.cli.machine.wire import Judge, Order, Question, Told

TURNS = 20


def order(index: int) -> Order:
    return Order(text="", file="f", cores=2, index=index, labels={}, origin={})


@dataclass
class HandProcess:
    """A process that does what the test says. `obeys`: ends when it is told to."""

    order: Order
    pid: int
    obeys: bool = True
    told: list[str] = field(default_factory=list)
    is_linked: bool = True
    has_answered: bool = True
    is_unregistered: bool = False
    ended: "asyncio.Future[str]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    async def wait(self) -> str:
        return await self.ended

    async def ask(self, question: Question, *, timeout_s: float = 0) -> Told:
        raise NoAnswerError

    def end(self) -> None:
        self.told.append("end")
        if self.obeys:
            self.die("ended with exit code 0")

    def kill(self) -> None:
        self.told.append("kill")
        self.die("was killed by SIGKILL")

    def die(self, how: str) -> None:
        if not self.ended.done():
            self.ended.set_result(how)


class World:
    """A supervisor of brokers 7 and 8."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.started: dict[int, list[HandProcess]] = {0: [], 1: []}
        self.obeys = True
        self.fails: list[OSError] = []
        orders = {7: order(0), 8: order(1)}
        self.supervisor = Supervisor(orders, clock=self.clock, spawn=self._spawn)

    def _spawn(self, given: Order) -> HandProcess:
        if self.fails:
            raise self.fails.pop()
        count = sum(map(len, self.started.values()))
        made = HandProcess(given, 100 + count, obeys=self.obeys)
        self.started[given.index].append(made)
        return made

    def counts(self) -> list[int]:
        return [len(some) for some in self.started.values()]

    async def settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        await self.settle()


def run(course: Callable[[World], Coroutine[None, None, None]]) -> None:
    """Play a course, and end what it leaves."""

    async def whole() -> None:
        world = World()
        world.supervisor.start()
        await world.settle()
        await course(world)
        world.supervisor.kill()
        await asyncio.wait_for(world.supervisor.end(), 10)

    asyncio.run(whole())


def test_a_pause_doubles_up_to_a_limit_and_a_long_run_begins_anew() -> None:
    pause = RestartPause()
    found = [pause.after(100) for _ in range(9)]
    assert found == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
    assert [pause.after(PAUSE_MS_MAX - 1), pause.after(PAUSE_MS_MAX)] == [60_000, PAUSE_MS_MIN]


def test_what_dies_is_started_again_after_its_pause_and_the_other_runs_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def course(world: World) -> None:
        one = world.supervisor.processes[1]
        await world.advance(3_000)
        world.started[1][0].die("was killed by SIGKILL")
        await world.settle()
        assert one.state is ProcessState.PAUSED and one.process is None
        assert one.next_start_ms - world.clock.now == PAUSE_MS_MIN
        await world.advance(PAUSE_MS_MIN - 1)
        assert world.counts() == [1, 1]
        await world.advance(1)
        assert world.counts() == [1, 2]
        assert (one.state, one.starts, one.last_end) == (
            ProcessState.RUNNING, 2, "was killed by SIGKILL",
        )  # fmt: skip
        world.started[1][1].die("ended with exit code 1: error: no disk")
        await world.settle()
        await world.advance(2 * PAUSE_MS_MIN - 1)
        assert world.counts() == [1, 2]
        await world.advance(1)
        assert world.counts() == [1, 3]

    with caplog.at_level(logging.WARNING):
        run(course)
    assert [one.message for one in caplog.records] == [
        "broker 8 was killed by SIGKILL; it ran for 3.0 s, and starts again in 0.5 s",
        "broker 8 ended with exit code 1: error: no disk; it ran for 0.0 s, and starts again in "
        "1.0 s",
    ]


def test_a_broker_that_was_unregistered_is_not_started_again_and_the_other_runs_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def course(world: World) -> None:
        one = world.supervisor.processes[1]
        world.started[1][0].is_unregistered = True
        world.started[1][0].die("ended with exit code 1: broker 8 was unregistered")
        await world.settle()
        assert (one.state, one.process) == (ProcessState.UNREGISTERED, None)
        await world.advance(PAUSE_MS_MAX)
        assert world.counts() == [1, 1]
        world.started[0][0].die("was killed by SIGKILL")
        await world.settle()
        await world.advance(PAUSE_MS_MIN)
        assert world.counts() == [2, 1]

    with caplog.at_level(logging.ERROR):
        run(course)
    assert [one.message for one in caplog.records] == [
        "broker 8 ended with exit code 1: broker 8 was unregistered; this supervisor does not "
        "start it again: end the supervisor, or start it anew if the broker shall join as a new one"
    ]


def test_a_process_is_told_whether_its_broker_was_started_before() -> None:
    async def course(world: World) -> None:
        world.started[1][0].die("was killed by SIGKILL")
        await world.settle()
        await world.advance(PAUSE_MS_MIN)
        assert [one.order.is_restart for one in world.started[1]] == [False, True]
        assert world.started[1][1].order.index == 1

    run(course)


def test_a_process_that_cannot_be_made_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def course(world: World) -> None:
        world.fails = [OSError(11, "Resource temporarily unavailable")]
        world.started[0][0].die("was killed by SIGKILL")
        await world.settle()
        await world.advance(PAUSE_MS_MIN)
        assert world.counts() == [1, 1]
        assert world.supervisor.processes[0].last_end == (
            "could not start: Resource temporarily unavailable"
        )
        await world.advance(2 * PAUSE_MS_MIN)
        assert world.counts() == [2, 1]

    run(course)


def test_all_end_in_order_and_none_is_started_again() -> None:
    async def course(world: World) -> None:
        world.started[1][0].die("was killed by SIGKILL")  # This one is paused meanwhile.
        await world.settle()
        await asyncio.wait_for(world.supervisor.end(), 10)
        await world.advance(PAUSE_MS_MAX)
        assert world.counts() == [1, 1]
        assert world.started[0][0].told == ["end"]
        assert {one.state for one in world.supervisor.processes} == {ProcessState.ENDED}

    run(course)


def test_a_process_that_does_not_end_is_killed_after_a_bound() -> None:
    async def course(world: World) -> None:
        for process in (world.started[0][0], world.started[1][0]):
            process.obeys = False
        ending = asyncio.ensure_future(world.supervisor.end())
        await world.settle()
        world.started[0][0].die("ended with exit code 0")
        await world.advance(STOP_MS - 1)
        assert not ending.done()
        await world.advance(1)
        await asyncio.wait_for(ending, 10)
        assert world.started[0][0].told == ["end"]
        assert world.started[1][0].told == ["end", "kill"]

    run(course)


def test_a_process_takes_no_module_from_where_its_supervisor_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process: its order is a file that is wrong, and its last words say so."""
    for name in ("asyncio", "msgspec", "strandline"):
        (tmp_path / f"{name}.py").write_text("open('taken', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    wrong = Order(text="[broker]\nid = 1\n", file="f", cores=1, index=0, labels={}, origin={})

    async def course() -> str:
        return await asyncio.wait_for(BrokerProcess(wrong).wait(), 60)

    told = asyncio.run(course())
    assert told.startswith("ended with exit code 1: f: [broker] data_directory: is missing")
    assert not (tmp_path / "taken").exists()


def test_a_process_that_stands_still_does_not_answer_and_its_questions_are_bounded() -> None:
    """A real process, which has not read its order yet."""

    async def course() -> None:
        process = BrokerProcess(order(0))
        os.kill(process.pid, signal.SIGSTOP)
        large = Judge(host="a", authorization=("x" * 16_384,), path="/")
        try:
            while not process.is_linked:
                await asyncio.sleep(0)
            for _ in range(100):
                with pytest.raises(NoAnswerError):
                    await process.ask(large, timeout_s=0.01)
            assert process._writer is not None
            assert process._writer.transport.get_write_buffer_size() < 2 * 16_384
        finally:
            process.kill()
        assert await asyncio.wait_for(process.wait(), 60) == "was killed by SIGKILL"

    asyncio.run(course())


def test_a_process_whose_supervisor_has_gone_before_it_said_anything_ends() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.close()
        assert main([str(theirs.detach())]) == 0
