"""Voters leave and return, and the controller arbitrates, through faults; mistakes are found.

Source: docs/decisions/0016-arbitration.md, 0020-who-votes.md; design section 6."""

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from strandline.controller.arbitration.arbiter import GroupVoters
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset, first_epoch
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import LeaderElected, MarksMoved
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.invariants.successors import AtMostOneSuccessor
from strandline.simulation.scenarios.scenario import REGIONS, GroupPlan, Scenario
from strandline.simulation.swarm.swarm import run_scenario

FIVE = tuple(BrokerId(1 + at) for at in range(5))
SEEDS = (1, 5, 7, 9)
PLANTED_SEEDS = range(60, 85)
FAULTS = ("kill", "kill-leader", "isolation", "split", "cut-from-leader", "death-in-the-middle")
CUTS = ("isolation", "split", "cut-from-leader")


def shrinking(seed: int, faults: Collection[str] = FAULTS) -> Scenario:
    """Five brokers, groups of two to four voters that leave and return; disks are trusted."""
    drawn = Scenario.draw(seed).whole()
    rng = random.Random(f"shrinking {seed}")
    groups = []
    for plan in drawn.groups:
        voters = tuple(rng.sample(FIVE, rng.choice((2, 3, 4))))
        least = rng.choice((1, 2))
        groups.append(replace(plan, voters=voters, observers=(), hosts=voters, min_insync=least))
    return on_five_brokers(drawn, groups, rng, faults=faults, active_ms=12_000)


def on_five_brokers(
    drawn: Scenario,
    groups: Sequence[GroupPlan],
    rng: random.Random,
    *,
    faults: Collection[str],
    active_ms: int,
) -> Scenario:
    """The scenario with these groups, on disks that are trusted, where voters may leave."""
    return replace(
        drawn,
        regions=tuple(rng.choice(REGIONS) for _ in FIVE),
        drift_ppm=(0,) * len(FIVE),
        groups=tuple(groups),
        group_consumer_count=0,
        log=replace(drawn.log, write_caching=False),
        fault_weights=dict.fromkeys(faults, 1),
        fault_interval_ms=1_500,
        active_ms=active_ms,
        shrinks_voters=True,
    )


@pytest.mark.simulation
def test_voters_leave_and_return_through_faults() -> None:
    outcomes = [run_scenario(shrinking(seed)) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    counts = Counter[str]()
    for outcome in outcomes:
        counts.update(outcome.tally.role_counts)
    assert counts["grants"] and counts["appointments"] and counts["leavings"] and counts["returns"]


# ---- planted mistakes --------------------------------------------------------------------------


def appoint_whoever_answers(patch: pytest.MonkeyPatch) -> None:
    """R3: one member is enough."""
    patch.setattr(GroupVoters, "may_appoint", lambda self, holders: bool(holders))


def only_successors(patch: pytest.MonkeyPatch) -> None:
    """Nothing else is judged."""
    honest = Checker.__init__

    def init(self: Checker, **options: object) -> None:
        honest(self, **options)  # type: ignore[arg-type]
        self._invariants = [one for one in self._invariants if isinstance(one, AtMostOneSuccessor)]
        self._sent.on_entries_sent = lambda fact: None  # type: ignore[method-assign]

    patch.setattr(Checker, "__init__", init)


@pytest.mark.simulation
def test_a_planted_mistake_is_found_by_this_promise_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    only_successors(monkeypatch)
    appoint_whoever_answers(monkeypatch)
    assert any(
        (run_scenario(shrinking(seed, CUTS)).violation or "").startswith("AtMostOneSuccessor:")
        for seed in PLANTED_SEEDS
    )


# ---- the invariant itself ------------------------------------------------------------------------

GROUP = GroupId(1)


def elected(broker: int, epoch: int, last: int = 0, *, of: int = 1) -> LeaderElected:
    """Its log has entries up to `last`, all of epoch `of`."""
    end = Index(last)
    return LeaderElected(BrokerId(broker), GROUP, Epoch(epoch), Index(0), end, lambda _: Epoch(of))


def committed(broker: int, epoch: int, commit: int) -> MarksMoved:
    return MarksMoved(
        broker=BrokerId(broker),
        life=1,
        group=GROUP,
        epoch=Epoch(epoch),
        commit=Index(commit),
        commit_epoch=Epoch(1),
        high_watermark=Offset(0),
        log_end_offset=Offset(0),
    )


def test_the_old_side_may_learn_late_of_what_was_acknowledged_and_commits_nothing_more() -> None:
    one = AtMostOneSuccessor()
    one.on_leader_elected(elected(1, 3))
    one.on_marks_moved(committed(1, 3, 5))
    one.on_leader_elected(elected(2, first_epoch(1), 6))
    one.on_marks_moved(committed(3, 3, 5))
    one.on_marks_moved(committed(3, 3, 6))
    one.on_marks_moved(committed(1, 3, 6))
    with pytest.raises(InvariantError, match="which grant 1 began without"):
        one.on_marks_moved(committed(1, 3, 7))


def test_what_the_old_side_commits_is_the_very_entry_that_its_successor_had() -> None:
    one = AtMostOneSuccessor()
    one.on_leader_elected(elected(1, 3))
    one.on_marks_moved(committed(1, 3, 5))
    one.on_leader_elected(elected(2, first_epoch(1), 6, of=2))
    with pytest.raises(InvariantError, match="which grant 1 began without"):
        one.on_marks_moved(committed(1, 3, 6))


def test_one_is_appointed_by_a_grant_and_others_may_be_elected_after_it() -> None:
    one = AtMostOneSuccessor()
    one.on_leader_elected(elected(1, first_epoch(1)))
    one.on_leader_elected(elected(2, first_epoch(1) + 1))
    with pytest.raises(InvariantError, match="grant 1 appoints 1 and 2"):
        one.on_leader_elected(elected(2, first_epoch(1)))
