"""Requests wait for decisions to take effect, no longer than until this broker hears of it."""

import asyncio

from tests.broker.broker_world import BrokerWorld

from strandline.broker.coordinators.applied_waiters import wait_for_leaders

TIMEOUT_MS = 5_000


def waiting_for(world: BrokerWorld, topic: str) -> asyncio.Task[None]:
    """A request waits until a topic has leaders."""
    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        wait = wait_for_leaders(world.services, [topic], timeout_ms=TIMEOUT_MS)
        tasks.append(asyncio.get_running_loop().create_task(wait))

    world.run(begin)
    return tasks[0]


def test_leaders_heard_of_before_their_topic_are_enough(world: BrokerWorld) -> None:
    waiting = waiting_for(world, "flights")
    (hear_of_leader,) = world.replication.on_leader_known
    world.run(lambda: hear_of_leader(world.cluster.next_group))
    assert not waiting.done()
    world.add_remote_topic("flights")
    for catch_up in list(world.controller.on_caught_up):
        world.run(catch_up)
    assert waiting.done()


def test_what_never_comes_is_waited_for_as_long_as_the_client_says(world: BrokerWorld) -> None:
    waiting = waiting_for(world, "flights")
    world.advance(TIMEOUT_MS - 1)
    assert not waiting.done()
    world.advance(2)
    assert waiting.done()
    assert world.replication.on_leader_known == world.controller.on_caught_up == []
