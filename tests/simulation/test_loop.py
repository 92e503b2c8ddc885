"""Coroutines run in virtual time, without real time, threads or sockets."""

import asyncio
import time

import pytest

from strandline.simulation.world.clock import HostClock
from strandline.simulation.world.loop import SimLoop
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler


def make_loop(drift_ppm: int = 0) -> tuple[Scheduler, Process, SimLoop]:
    scheduler = Scheduler()
    process = Process(scheduler, "one")
    return (
        scheduler,
        process,
        SimLoop(scheduler, process, HostClock(scheduler, drift_ppm=drift_ppm)),
    )


def test_an_hour_of_sleep_takes_no_real_time() -> None:
    scheduler, _, loop = make_loop()

    async def sleep() -> float:
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(3_600)
        return asyncio.get_running_loop().time() - before

    begun = time.perf_counter()
    assert loop.run_until_complete(sleep()) == 3_600
    assert time.perf_counter() - begun < 3_600
    assert scheduler.now_us == 3_600_000_000
    loop.close()


def test_tasks_timeouts_queues_and_cancellation_work() -> None:
    _, _, loop = make_loop()

    async def scenario() -> list[str]:
        seen: list[str] = []
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def produce() -> None:
            for number in range(3):
                await asyncio.sleep(1)
                await queue.put(str(number))

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            seen.extend([await queue.get() for _ in range(3)])
        try:
            async with asyncio.timeout(0.5):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timeout")
        task = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(0)
        task.cancel()
        seen.append("cancelled" if (await asyncio.gather(task, return_exceptions=True)) else "")
        seen.append(await asyncio.to_thread(lambda: "from the executor"))
        return seen

    assert loop.run_until_complete(scenario()) == [
        "0", "1", "2", "timeout", "cancelled", "from the executor",
    ]  # fmt: skip
    loop.close()
    assert loop.errors == []


def test_two_loops_share_one_virtual_time() -> None:
    scheduler = Scheduler()
    seen: list[tuple[str, int]] = []
    loops = []
    for name, pause in (("slow", 0.3), ("fast", 0.2)):
        loop = SimLoop(scheduler, Process(scheduler, name), HostClock(scheduler))
        loops.append(loop)

        async def tick(name: str = name, pause: float = pause) -> None:
            for _ in range(2):
                await asyncio.sleep(pause)
                seen.append((name, scheduler.now_us // 1_000))

        loop.create_task(tick())
    scheduler.run_until(10_000_000)
    assert seen == [("fast", 200), ("slow", 300), ("fast", 400), ("slow", 600)]
    for loop in loops:
        loop.close()


def test_a_dead_process_ends_its_coroutines_in_the_order_in_which_they_began() -> None:
    scheduler, process, loop = make_loop()
    seen: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(number)

    tasks = [loop.create_task(wait(number)) for number in range(3)]
    scheduler.run_until(1_000)
    process.kill()
    loop.close()
    assert seen == [0, 1, 2]
    assert [task.done() for task in tasks] == [False] * 3
    del tasks


def test_what_asyncio_would_log_is_collected() -> None:
    scheduler, _, loop = make_loop()

    def fail() -> None:
        raise KeyError("broken")

    loop.call_soon(fail)
    scheduler.run_until(1_000)
    assert len(loop.errors) == 1
    assert "broken" in loop.errors[0]
    loop.close()


def test_there_are_no_sockets() -> None:
    _, _, loop = make_loop()

    async def connect() -> None:
        await loop.sock_connect(None, None)  # type: ignore[arg-type]

    with pytest.raises(NotImplementedError):
        loop.run_until_complete(connect())
    loop.close()


def test_waiting_for_what_never_comes_is_an_error() -> None:
    _, _, loop = make_loop()

    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="nothing more can happen"):
        loop.run_until_complete(wait())
    loop.close()
