"""What really is the case in the world: who has no process, and whether anything else is amiss.

Why:    a promise about an outage that takes the controller's word for it also holds of a controller
        that sees none; what it should have seen is known here.
How:    a host that dies or is started, or a fault that begins or ends, is told to the checker
        (`Disturbed`). Of faults that only take processes or power away (`DEATHS`) their hosts say
        all there is, and those of clients (`OF_CLIENTS`) concern no broker. Any other one is amiss
        until it ends, or from then on where it ends by itself; and so is what an operator does with
        a broker, for who counts in its zone changes by that.
Owns:   which faults are in force.
Source: docs/decisions/0018-outages.md; design section 10."""

from collections.abc import Mapping

from strandline.model.ids import BrokerId
from strandline.simulation.faults.kinds import ANSWER_FAULTS
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import Disturbed
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.member import Member
from strandline.simulation.world.scheduler import Scheduler

DEATHS = {
    "kill",
    "kill-leader",
    "kill-all",
    "power-failure",
    "leader-power-failure",
    "region-power-failure",
    "total-power-failure",
    "zone-kill",
    "zone-power-failure",
    "absence",
}
OF_CLIENTS = set(ANSWER_FAULTS)
"""Of these no broker notices anything of another one."""
OPERATOR = -1
"""The number of what an operator has done."""


class Disturbances:
    """See the module."""

    def __init__(
        self, hosts: Mapping[BrokerId, SimHost[Member]], scheduler: Scheduler, checker: Checker
    ) -> None:
        self._hosts = hosts
        self._scheduler = scheduler
        self._checker = checker
        self._in_force: set[int] = set()
        """The faults in force, by number."""

    def begin(self, number: int, kind: str) -> None:
        """A fault has begun."""
        if kind not in DEATHS | OF_CLIENTS:
            self._in_force.add(number)
        self.report()

    def end(self, number: int) -> None:
        """A fault that does not end by itself has been ended."""
        self._in_force.discard(number)
        self.report()

    def report(self) -> None:
        """A host has died, or was started."""
        gone = frozenset(broker for broker, host in self._hosts.items() if not host.is_up)
        now_us = self._scheduler.now_us
        self._checker.disturbed(Disturbed(now_us, gone, has_other_faults=bool(self._in_force)))
