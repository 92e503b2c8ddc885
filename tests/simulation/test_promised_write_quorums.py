"""Mistakes planted in what rests on a promised write quorum, each shown by one scenario.

Drawn outages promise one, too, and seldom lose so many of those that did.

Source: docs/decisions/0041-promised-write-quorums.md."""

from collections.abc import Callable

import pytest
from tests.simulation.scenario_checks import scenario_of
from tests.simulation.test_each_invariant import only

from strandline.broker.groups.promised_write_quorums import PromisedWriteQuorums
from strandline.raft.group.configuration import Configuration
from strandline.raft.leader import configuration_change
from strandline.simulation.swarm.swarm import run_scenario

SCENARIO = "two-of-three-lost-where-all-have-to-acknowledge"


def acknowledge_with_fewer_than_were_promised(patch: pytest.MonkeyPatch) -> None:
    """A leader lowers the write quorum that the controller counts on, and does not tell it."""
    patch.setattr(
        PromisedWriteQuorums, "has_to_go", lambda self, replica, config, *, is_stuck: False
    )
    patch.setattr(configuration_change, "promised_quorum_of", lambda floor: 0)


def rest_a_lease_on_a_majority(patch: pytest.MonkeyPatch) -> None:
    """A leader answers reads though fewer voters than its floor asks for hear it."""
    patch.setattr(Configuration, "holds_lease", Configuration.wins_election)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("plant", "promise"),
    [
        (acknowledge_with_fewer_than_were_promised, "AtMostOneSuccessor"),
        (rest_a_lease_on_a_majority, "NoStaleLeaderRead"),
    ],
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(promise, monkeypatch)
    plant(monkeypatch)
    violation = run_scenario(scenario_of(SCENARIO)).violation
    assert violation is not None
    assert violation.startswith(promise)
