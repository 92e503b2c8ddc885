"""Observers stand in for voters, and leave again, through faults: nothing acknowledged is lost.

Source: docs/decisions/0025-promotion.md; design section 6."""

import logging
import random
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import bench.promotion
import pytest
from tests.simulation.scenario_checks import kept
from tests.simulation.test_leaving_voters import FAULTS, FIVE, on_five_brokers

from strandline.broker.groups import blocked_grants, voter_reconciliation, wanted_voters
from strandline.broker.groups.moving import Moving
from strandline.controller.arbitration import grant_progress
from strandline.controller.arbitration.promotion import Bounds
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.placement.policy.document import Promotion
from strandline.replication.leader.appender import QUORUM_ACK
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.group_consumers import GroupConsumer
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import Acknowledged
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.world import World

SEEDS = (5, 19, 21, 24)
WAITING_SEEDS = (14, 24, 25, 28)
LEAVING_SEED = 700578
POLICIES: tuple[Promotion, ...] = ("under-min-isr", "under-replicated", "region-lost")
"""The last one promotes nobody here: brokers without labels have no region that could be lost."""


def promoting(seed: int, faults: Collection[str] = FAULTS) -> Scenario:
    """Five brokers; groups of two or three voters, and one or two observers that stand in."""
    drawn = Scenario.draw(seed).whole()
    rng = random.Random(f"promoting {seed}")
    groups = []
    for plan in drawn.groups:
        hosts = rng.sample(FIVE, rng.choice((3, 4, 5)))
        count = rng.choice((2, 2, 3) if len(hosts) > 3 else (2,))
        voters, observers = tuple(hosts[:count]), tuple(hosts[count:])
        groups.append(
            replace(
                plan,
                voters=voters,
                observers=observers,
                hosts=tuple(hosts),
                min_insync=rng.choice((1, 2, count)),
                promotion=rng.choice(POLICIES),
            )
        )
    return on_five_brokers(drawn, groups, rng, faults=faults, active_ms=16_000)


class Service:
    """When what was acknowledged with acks=all, and when a consumer group read what was new."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.written_ms: dict[GroupId, list[int]] = {}
        self.read_ms: dict[GroupId, list[int]] = {}
        acknowledged, on_read = Checker.acknowledged, GroupConsumer._on_read
        construct = World.__init__
        worlds: list[World] = []

        def now_ms() -> int:
            return worlds[-1].scheduler.now_us // 1_000

        def made(world: World, *args: Any, **options: Any) -> None:
            construct(world, *args, **options)
            worlds.append(world)

        def written(checker: Checker, fact: Acknowledged) -> None:
            acknowledged(checker, fact)
            if fact.acks == QUORUM_ACK:
                self.written_ms.setdefault(fact.group, []).append(now_ms())

        def read(
            member: GroupConsumer,
            broker: BrokerId,
            group: GroupId,
            positions: dict[GroupId, Offset],
            *found: Any,
        ) -> None:
            before = positions[group]
            on_read(member, broker, group, positions, *found)
            if positions[group] > before:
                self.read_ms.setdefault(group, []).append(now_ms())

        patch.setattr(World, "__init__", made)
        patch.setattr(Checker, "acknowledged", written)
        patch.setattr(GroupConsumer, "_on_read", read)

    def expect(self, from_s: int, to_s: int, *groups: int) -> None:
        """Each of these groups is written and read."""
        for times_ms in (self.written_ms, self.read_ms):
            for group in map(GroupId, groups):
                assert any(from_s * 1_000 <= one < to_s * 1_000 for one in times_ms[group])


@pytest.mark.simulation
def test_observers_stand_in_for_a_region_and_leave_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both examples of Confluent's, one group each; whoever writes and reads goes on."""
    service = Service(monkeypatch)
    outcome = kept("observers-stand-in-for-a-region")
    service.expect(1, 4, 1, 2)
    service.expect(9, 12, 1)  # West has no power since 4 s; both voters of group 2 are there.
    service.expect(13, 16, 1)
    service.expect(21, 45, 1, 2)
    service.expect(49, 52, 1, 2)  # Broker 4 is dead since 45 s, and broker 1 since 52 s.
    service.expect(58, 61, 1, 2)
    service.expect(61, 65, 1, 2)
    service.expect(75, 95, 1, 2)
    told = [line.partition("-0: ")[0][-7:] + " " + word for line, word in steps(outcome.trace)]
    assert [one for one in told if one.startswith("group-1")] == [
        "group-1 promote",
        "group-1 demote",
        "group-1 promote",
        "group-1 demote",
    ]
    assert [one for one in told if one.startswith("group-2")] == [
        "group-2 promote",
        "group-2 promote",
        "group-2 demote",
        "group-2 hand-over",
        "group-2 demote",
    ]


@pytest.mark.simulation
def test_an_observer_stands_in_while_a_region_is_lost_and_not_for_a_broker_alone() -> None:
    outcome = kept("observer-stands-in-while-a-region-is-lost")
    told = steps(outcome.trace)
    assert [word for _, word in told] == ["promote", "demote"]
    names = [line.partition("-0: ")[2].partition(" voters")[0] for line, _ in told]
    assert names == [
        "promote broker 7: region-lost: 2 of 4",
        "demote broker 7: region-lost: 4 of 4",
    ]
    down = next(at for at, line in enumerate(outcome.trace) if "region west is down" in line)
    back = next(at for at, line in enumerate(outcome.trace) if "region west is back" in line)
    promoted, demoted = (outcome.trace.index(line) for line, _ in told)
    assert down < promoted < back < demoted


@pytest.mark.simulation
def test_observers_that_leave_one_after_the_other_are_waited_for() -> None:
    """Both stand in, and one of them leads: each has not been needed for ten seconds before it
    leaves, and the next leader counts from the start."""
    outcome = run_scenario(draw_outages(LEAVING_SEED), log_level=logging.INFO)
    assert outcome.violation is None
    assert [word for _, word in steps(outcome.trace)][-3:] == ["demote", "hand-over", "demote"]


def steps(trace: Collection[str]) -> list[tuple[str, str]]:
    """(line, first word of what it says) of what is done about observers."""
    found = []
    for line in trace:
        word = line.partition("-0: ")[2].partition(" ")[0]
        if word in ("promote", "demote", "hand-over"):
            found.append((line, word))
    return found


def hurry(patch: pytest.MonkeyPatch) -> None:
    """All that waits for a while waits for half a second, so that roles change all the time."""
    for module, name in (
        (voter_reconciliation, "SILENT_MS"),
        (voter_reconciliation, "RETURN_MS"),
        (grant_progress, "STUCK_MS"),
        (voter_reconciliation, "HANDOVER_RETRY_MS"),
    ):
        patch.setattr(module, name, 500)
    patch.setattr(wanted_voters, "bounds_of", lambda config: Bounds(demote_ms=500))


@pytest.mark.simulation
def test_observers_stand_in_and_leave_through_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    outcomes = [run_scenario(promoting(seed), log_level=logging.INFO) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    words = {word for outcome in outcomes for _, word in steps(outcome.trace)}
    assert {"promote", "demote"} <= words


def begin_late(patch: pytest.MonkeyPatch) -> None:
    """What is granted is begun up to two seconds later, so that many die in between; and others are
    asked for in its place, which some leaders hear of after they have begun."""
    are_in_step = Moving._are_in_step
    seen: dict[tuple[int, int, int], int] = {}

    def held(replica: Replica, partition: Partition, roles: Roles) -> bool:
        if partition.pending and roles == partition.granted:
            grant = replica.self_id, partition.group, partition.last_version
            seen[grant] = looks = seen.get(grant, 0) + 1
            if looks <= sum(grant) % 4 * 5:
                return False
        return are_in_step(replica, partition, roles)

    patch.setattr(Moving, "_are_in_step", staticmethod(held))
    patch.setattr(blocked_grants, "BLOCKED_MS", 500)


@pytest.mark.simulation
def test_grants_that_wait_are_superseded_through_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Observers and voters die between the grant and the change, and between that and its end."""
    hurry(monkeypatch)
    outcomes = []
    for seed in WAITING_SEEDS:
        with monkeypatch.context() as patch:  # Each history by itself, in whatever order.
            begin_late(patch)
            outcomes.append(run_scenario(promoting(seed), log_level=logging.INFO))
    assert [outcome.violation for outcome in outcomes] == [None] * len(WAITING_SEEDS)
    assert any("cannot begin" in line for one in outcomes for line in one.trace)


@pytest.mark.simulation
def test_writes_go_on_within_three_seconds_of_the_loss_being_noticed() -> None:
    """In virtual time, with round trips of 64 ms and more; `python -m bench.promotion` has forty
    histories."""
    times = bench.promotion.measure(2)
    assert 0 < times["resumed_ms"]["max"] <= 3_000
