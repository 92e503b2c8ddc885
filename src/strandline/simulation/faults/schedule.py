"""Begins and ends the planned faults of a scenario.

Why:    every fault must be over before the cluster is judged.
How:    each fault begins at its time, from random numbers of its own, and ends by itself, after
        its duration, or when `end` ends all of them.
Owns:   how to end the faults in force, and how many there were.
Source: design section 10."""

import random
from functools import partial

from strandline.simulation.faults.fault_targets import End, over
from strandline.simulation.faults.faults import FAULTS
from strandline.simulation.scenarios.scenario import PlannedFault
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.simulation.world.tally import Tally


class FaultSchedule:
    """See the module."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._is_active = False
        self._ends: dict[int, End] = {}
        """{number of the fault: how to end it}"""
        self._counts: dict[str, int] = {}
        self._void_count = 0

    def begin(self) -> None:
        """Plan all faults, from this moment on."""
        self._is_active = True
        self._cluster.restarts_the_dead = False
        for number, fault in enumerate(self._cluster.scenario.plan_faults()):
            begin = partial(self._begin, number, fault)
            self._cluster.scheduler.after(fault.at_ms * US_PER_MS, begin)

    def end(self) -> None:
        """No fault begins any more, and all end."""
        self._is_active = False
        self._cluster.restarts_the_dead = True
        for number in list(self._ends):
            self._end(number)

    def count(self, tally: Tally) -> None:
        """How many there were."""
        tally.fault_counts = dict(self._counts)
        tally.void_fault_count = self._void_count

    def _begin(self, number: int, fault: PlannedFault) -> None:
        cluster = self._cluster
        if not self._is_active:
            return
        cluster.begun_kinds.add(fault.kind)
        end = FAULTS[fault.kind](cluster, random.Random(fault.seed))
        if end is None:
            self._void_count += 1
            return
        cluster.disturbances.begin(number, fault.kind)
        self._counts[fault.kind] = self._counts.get(fault.kind, 0) + 1
        if end is not over:
            self._ends[number] = end
            duration_us = fault.duration_ms * US_PER_MS
            cluster.scheduler.after(duration_us, lambda: self._end(number))

    def _end(self, number: int) -> None:
        end = self._ends.pop(number, None)
        if end is not None:
            end()
            self._cluster.disturbances.end(number)
