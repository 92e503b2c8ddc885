"""What really is the case: which brokers have no process, and whether other faults are in force.

Why:    an invariant about outages must not rely on the controller's view, or a controller that sees
        no outage would keep it.
How:    reports to the checker (`Disturbed`) when a host dies or starts, and when a fault begins or
        ends. For faults that only take processes or power away (`DEATHS`), the hosts say all there
        is. Faults of clients (`OF_CLIENTS`) concern no broker. Every other fault counts until it
        ends; one that ends by itself counts from then on. So does what an operator does with a
        broker, because that changes which brokers count in its zone.
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
