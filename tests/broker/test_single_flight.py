"""At most one background task runs at a time."""

import asyncio

import pytest

from strandline.broker.operations.single_flight import SingleFlight


async def wait_over(single_flight: SingleFlight) -> None:
    """Until another may begin."""
    while single_flight.is_under_way:
        await asyncio.sleep(0)


def test_another_may_begin_once_it_is_over_whatever_came_of_it() -> None:
    done: list[str] = []

    async def fail() -> None:
        done.append("failed")
        raise RuntimeError("out of order")

    async def work() -> None:
        done.append("worked")

    async def look() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        single_flight = SingleFlight()
        for one in (fail, work):
            single_flight.begin(one)
            assert single_flight.is_under_way
            with pytest.raises(AssertionError):
                single_flight.begin(work)
            await wait_over(single_flight)

    asyncio.run(look())
    assert done == ["failed", "worked"]


def test_what_is_under_way_is_given_up() -> None:
    went_on: list[str] = []

    async def look() -> None:
        single_flight, begun, ended = SingleFlight(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await ended.wait()
            went_on.append("it goes on")

        single_flight.begin(work)
        await begun.wait()
        single_flight.stop()
        ended.set()
        await wait_over(single_flight)

    asyncio.run(look())
    assert not went_on
    SingleFlight().stop()
