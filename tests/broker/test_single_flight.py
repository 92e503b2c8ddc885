"""Work in the background, one piece at a time."""

import asyncio

import pytest

from strandline.broker.operations.single_flight import Errand


async def wait_over(errand: Errand) -> None:
    """Until another may begin."""
    while errand.is_under_way:
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
        errand = Errand()
        for one in (fail, work):
            errand.begin(one)
            assert errand.is_under_way
            with pytest.raises(AssertionError):
                errand.begin(work)
            await wait_over(errand)

    asyncio.run(look())
    assert done == ["failed", "worked"]


def test_what_is_under_way_is_given_up() -> None:
    went_on: list[str] = []

    async def look() -> None:
        errand, begun, ended = Errand(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await ended.wait()
            went_on.append("it goes on")

        errand.begin(work)
        await begun.wait()
        errand.stop()
        ended.set()
        await wait_over(errand)

    asyncio.run(look())
    assert not went_on
    Errand().stop()
