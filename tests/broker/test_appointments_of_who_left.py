"""A broker that removed its replica, unknown to the controller, is not appointed as a voter with
the log it had.

Source: `controller.decide.grants`; decision 0038."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.broker import moving_world as room
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_old_directories import start, stop
from tests.broker.test_returning_replicas import cut, heal
from tests.broker.test_stale_log_resets import BRIEF, MAY_BE_ALONE, has_key, put

from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.controller.commands import Answer, Command, RequestVoters
from strandline.controller.decide import grants
from strandline.model.ids import BrokerId
from strandline.raft.messages import Fenced

A, B, Y = 5, 4, 6
CONTROLLERS = (1, 2, 3)
CONFIGS = (*BRIEF, ("voters.shrink.enable", "true"), MAY_BE_ALONE)
LARGE = b"x" * 9_000
"""Segments fill by few entries: who is appointed lacks 64 at most."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Voters A and B, and a key that Y will have; only the test writes from then on."""
    monkeypatch.setattr(room, "BROKERS", (1, 2, 3, 4, 5, 6))
    with moving_world(monkeypatch, (A, B), configs=CONFIGS) as made:
        made.until(lambda: len(made.acked) > 5)
        put(made, b"1")
        monkeypatch.setattr(made, "_produce", made._watch)
        yield made


def lead(world: MovingWorld, broker: int) -> None:
    leader = world.leader_of(TOPIC)
    if leader != broker:
        world.replicas_of(TOPIC)[leader].transfer_leadership(BrokerId(broker))
        world.until(lambda: world.leader_of(TOPIC) == broker)


def churn(world: MovingWorld) -> None:
    put(world, LARGE, key=b"other")
    world.advance(500)


def leave_and_delete(world: MovingWorld) -> None:
    """B drops Y, and with A alone lets go of the key and its tombstone."""

    def is_removed() -> bool:
        raft = world.replicas_of(TOPIC)[B].raft
        return Y not in raft.configuration.members and raft.configuration_index <= raft.commit

    world.until(is_removed)
    put(world, None)
    for _ in range(30):
        if not has_key(world, A) and not has_key(world, B):
            return
        churn(world)
    pytest.fail("the tombstone stays")


def until_appointed(world: MovingWorld) -> None:
    world.until(lambda: world.known.grant > 0 and not world.known.is_fenced)
    assert A in world.known.pending


def settle(world: MovingWorld) -> None:
    start(world, B)
    world.until(lambda: world.is_settled(A, B, Y))
    for _ in range(8):
        churn(world)
    assert world.violations == []


def a_leader_that_hears_no_controller(world: MovingWorld, _: pytest.MonkeyPatch) -> None:
    """B is elected while Y is granted as a voter, and knows of no move: it drops the observer."""
    lead(world, A)
    for one in CONTROLLERS:
        cut(world, B, one)
    world.move(A, B, Y)
    world.until(lambda: bool(world.known.pending))
    lead(world, B)
    leave_and_delete(world)
    stop(world, B)
    until_appointed(world)
    for one in CONTROLLERS:
        heal(world, B, one)
    settle(world)


def a_request_that_comes_late(world: MovingWorld, patch: pytest.MonkeyPatch) -> None:
    """It was asked for Y, whose move was cancelled, and is asked for again."""
    submit = ControllerHost.submit
    held: list[Command] = []
    free = asyncio.Event()

    async def late(self: ControllerHost, command: Command, **options: Any) -> Answer:
        if isinstance(command, RequestVoters) and not held:
            held.append(command)
            await free.wait()
        return await submit(self, command, **options)

    lead(world, B)
    patch.setattr(ControllerHost, "submit", late)
    world.move(A, B, Y)
    world.until(lambda: bool(held) and has_key(world, Y))
    stop(world, Y)
    world.cancel()
    leave_and_delete(world)
    world.move(A, B, Y)
    world.until(lambda: Y in world.replicas_of(TOPIC)[B].configuration.members)
    free.set()
    world.until(lambda: bool(world.known.pending))
    stop(world, B)
    start(world, Y)
    until_appointed(world)
    settle(world)


WAYS = (a_leader_that_hears_no_controller, a_request_that_comes_late)


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_was_deleted_meanwhile_does_not_come_back(
    way: Any, world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    way(world, monkeypatch)
    assert not any(has_key(world, one) for one in (A, B, Y))


@pytest.mark.parametrize("way", WAYS)
def test_a_voter_that_lacks_the_last_configuration_has_it(
    way: Any, world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake: a replica that is near enough is appointed as a voter."""

    def unsaid(*parts: Any) -> Fenced:
        return Fenced(*parts[:4])

    monkeypatch.setattr(grants, "Fenced", unsaid)
    way(world, monkeypatch)
    assert has_key(world, Y)
