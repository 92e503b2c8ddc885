"""The end of a pass: steps of requests run after each other, before the loop looks for more."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from strandline.network.loop_clock import LoopClock
from strandline.network.pass_end import PassEnd

LIMIT_S = 10
Factory = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def factory(request: pytest.FixtureRequest) -> Factory:
    made: Factory = request.param
    return made


def run(factory: Factory, scenario: Callable[[PassEnd, list[str]], None]) -> list[str]:
    """What the scenario has logged once the loop has nothing left to do."""
    log: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: log.append(str(context["exception"])))
        done = asyncio.Event()
        scenario(PassEnd.of(loop), log)
        loop.call_later(0.01, done.set)
        async with asyncio.timeout(LIMIT_S):
            await done.wait()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    return log


def test_steps_run_in_order_and_what_they_add_runs_in_the_same_pass(factory: Factory) -> None:
    def scenario(end: PassEnd, log: list[str]) -> None:
        loop = asyncio.get_running_loop()

        def append() -> None:
            log.append("append")
            loop.call_soon(log.append, "next pass")
            end.add(lambda: log.append("send"))

        end.add(append)
        end.add(lambda: log.append("append to another"))

    assert run(factory, scenario) == ["append", "append to another", "send", "next pass"]


def test_a_step_that_fails_keeps_no_other_from_running(factory: Factory) -> None:
    def scenario(end: PassEnd, log: list[str]) -> None:
        def fail() -> None:
            raise ValueError("failed")

        end.add(fail)
        end.add(lambda: log.append("the next one"))

    assert sorted(run(factory, scenario)) == ["failed", "the next one"]


def test_a_loop_has_one_end_of_a_pass(factory: Factory) -> None:
    def scenario(end: PassEnd, log: list[str]) -> None:
        clock = LoopClock(asyncio.get_running_loop())
        clock.at_pass_end(lambda: log.append("first"))
        end.add(lambda: log.append("second"))
        assert PassEnd.of(asyncio.get_running_loop()) is end

    assert run(factory, scenario) == ["first", "second"]
