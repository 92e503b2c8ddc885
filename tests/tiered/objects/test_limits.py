"""What a broker's stores may hold at one time, and how fast bytes go."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiered.objects.opened import run

from strandline.tiered.objects.limits import MIB, SMALL_BYTES_MAX, ByteBudget, Pace, StoreLimits


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def test_the_first_to_ask_is_the_first_to_get() -> None:
    async def main() -> None:
        budget, order = ByteBudget(10), list[str]()

        async def hold(name: str, size: int, until: asyncio.Event) -> None:
            async with budget.hold(size):
                order.append(name)
                await until.wait()

        first, rest = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.ensure_future(hold("a", 8, first))]
        await settle()
        tasks += [asyncio.ensure_future(hold("large", 9, rest))]
        await settle()
        # It would fit, and would keep the large one waiting for ever.
        tasks += [asyncio.ensure_future(hold("small", 1, rest))]
        await settle()
        assert order == ["a"]
        first.set()
        await settle()
        assert order == ["a", "large", "small"]
        rest.set()
        await asyncio.gather(*tasks)
        assert budget.held_bytes == 0

    run(main())


def test_more_than_everything_counts_as_everything() -> None:
    async def main() -> None:
        budget = ByteBudget(10)
        async with budget.hold(1_000):
            assert budget.held_bytes == 10

    run(main())


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.booleans()), max_size=30),
)
def test_the_budget_is_never_exceeded_and_all_of_it_comes_back(
    holders: list[tuple[int, int, bool]],
) -> None:
    """Whatever the sizes, the times, and whoever is cancelled while waiting or holding."""

    async def main() -> None:
        budget, held = ByteBudget(10), 0

        async def hold(size: int, turns: int) -> None:
            nonlocal held
            async with budget.hold(size):
                held += min(size, 10)
                assert held <= 10
                try:
                    for _ in range(turns):
                        await asyncio.sleep(0)
                finally:
                    held -= min(size, 10)

        tasks = []
        for size, turns, is_cancelled in holders:
            tasks.append(asyncio.ensure_future(hold(size, turns)))
            await asyncio.sleep(0)
            if is_cancelled:
                tasks[len(tasks) // 2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (budget.held_bytes, held) == (0, 0)
        async with asyncio.timeout(5), budget.hold(10):
            pass

    run(main())


def test_uploads_leave_room_for_readers() -> None:
    async def main() -> None:
        limits = StoreLimits(requests_inflight_max=4, inflight_bytes_max=16 * MIB)
        running = 0

        async def upload() -> None:
            nonlocal running
            async with limits.upload(MIB):
                running += 1
                await asyncio.Event().wait()

        tasks = [asyncio.ensure_future(upload()) for _ in range(5)]
        await settle()
        assert running == 2
        async with asyncio.timeout(5):
            async with limits.download(8 * MIB):
                pass
            async with limits.upload(SMALL_BYTES_MAX):
                pass
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())


def test_one_request_at_a_time_is_still_one_each_way() -> None:
    async def main() -> None:
        limits = StoreLimits(requests_inflight_max=1)
        async with asyncio.timeout(5), limits.upload(MIB), limits.download(MIB):
            pass

    run(main())


def test_a_pace_spreads_bytes_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(delay: float) -> None:
        slept.append(delay)

    async def main() -> None:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        pace = Pace(1_000)
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 5.0)
        for size in (500, 1_000, 1):
            await pace.take(size)
        await Pace(0).take(1 << 40)

    run(main())
    assert slept == pytest.approx([0.5, 1.5])
