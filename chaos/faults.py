"""Carries out the plan: begins each fault at its time, and ends it.

How:    all beginnings and ends in the order of time; in between it checks the brokers."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from chaos.brokers import Brokers
from chaos.machines import Machines
from chaos.network import Network
from chaos.plan import Fault, Plan
from chaos.small_disk import SmallDisk
from chaos.targets import Kind

LOOK_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True)
class World:
    """What faults are done to."""

    network: Network
    brokers: Brokers
    disk: SmallDisk


class FaultRunner:
    """See the module."""

    def __init__(self, plan: Plan, world: World, *, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._world = world
        self._say = say
        self._active: list[Fault] = []

    def run(self, look: Callable[[], None]) -> None:
        """The whole plan; `look` is called every now and then. Afterwards all is whole again."""
        moments = [(fault.begin_ms, 1, fault) for fault in self._plan.faults]
        moments += [(fault.end_ms, 0, fault) for fault in self._plan.faults]
        moments.sort(key=lambda moment: (moment[0], moment[1], moment[2].number))
        begun = time.monotonic()
        for at_ms, is_begin, fault in moments:
            while (left_s := begun + at_ms / 1000 - time.monotonic()) > 0:
                time.sleep(min(left_s, LOOK_INTERVAL_S))
                self.look_after()
                look()
            if is_begin:
                self._begin(fault)
            else:
                self._end(fault)
        while time.monotonic() < begun + self._plan.duration_ms / 1000:
            time.sleep(LOOK_INTERVAL_S)
            self.look_after()
            look()

    def look_after(self) -> None:
        """Brokers that ended by themselves."""
        self._world.brokers.watch(small_disk=self._plan.small_disk)

    @property
    def _machines(self) -> Machines:
        assert isinstance(self._world.brokers, Machines), "these faults are of machines"
        return self._world.brokers

    def _begin(self, fault: Fault) -> None:
        self._say(str(fault))
        self._active.append(fault)
        match fault.kind:
            case Kind.KILL:
                self._world.brokers.kill(fault.target.processes)
            case Kind.KILL_BROKER:
                self._machines.kill_brokers(fault.target.brokers)
            case Kind.POWER_OFF:
                self._world.network.set_faults(self._active)
                self._machines.power_off(fault.target.processes)
            case Kind.PAUSE:
                self._world.brokers.pause(fault.target.processes)
            case Kind.FULL_DISK:
                self._world.disk.fill()
            case Kind.CUT | Kind.DELAY | Kind.LOSS:
                self._world.network.set_faults(self._active)

    def _end(self, fault: Fault) -> None:
        self._active.remove(fault)
        match fault.kind:
            case Kind.KILL:
                self._world.brokers.start(fault.target.processes)
            case Kind.KILL_BROKER:
                pass  # Its supervisor has started it again.
            case Kind.POWER_OFF:
                self._world.network.set_faults(self._active)
                self._world.brokers.start(fault.target.processes)
            case Kind.PAUSE:
                self._world.brokers.resume(fault.target.processes)
            case Kind.FULL_DISK:
                self._world.disk.free()
            case Kind.CUT | Kind.DELAY | Kind.LOSS:
                self._world.network.set_faults(self._active)
