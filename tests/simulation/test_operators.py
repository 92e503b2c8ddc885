"""The simulated operator wants what was said last, as persons do who look again.

Source: docs/internals/simulation.md, "Outages"."""

import random

from strandline.config.broker_life import MAINTENANCE, NO_END
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.simulation.clients.operators import Operator
from strandline.simulation.scenarios.scenario import PlannedChange
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.cluster import SimCluster

SEED = 242
"""Maintenance is begun by a request that is held up in a cut, ended by another, and begun after."""
BROKER = BrokerId(5)


def test_what_a_late_attempt_has_overridden_is_said_again() -> None:
    operator = Operator("operator", SimCluster(draw_outages(SEED)), random.Random(SEED))
    for at_ms, in_maintenance in ((1, True), (2, False)):
        operator._change(PlannedChange(at_ms, broker=BROKER, in_maintenance=in_maintenance))
    operator._wanted.clear()
    cluster = Cluster()
    assert operator.reassert(cluster) == "" and operator.is_done
    cluster.broker_configs[BROKER] = {MAINTENANCE: "0"}
    assert operator.reassert(cluster) == "" and operator.is_done
    cluster.broker_configs[BROKER] = {MAINTENANCE: str(NO_END)}
    found = operator.reassert(cluster)
    assert found == f"{MAINTENANCE} of broker 5 is -1, and 0 was said last"
    assert not operator.is_done


def test_a_broker_is_not_left_in_maintenance_by_a_request_that_was_held_up() -> None:
    outcome = run_scenario(draw_outages(SEED))
    assert outcome.violation is None
    assert any("and 0 was said last" in line for line in outcome.trace)
