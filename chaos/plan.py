"""The faults of a run, drawn from its seed: which, when, which targets, for how long.

Why:    a run that found something must be able to repeat its faults; what the machine makes of them
        differs a little each time.
How:    one fault after the other, up to three at a time; no two stop the same process, nor fill
        the disk twice. The last one ends with the plan. `targets` has the kinds and their targets.
Source: design section 10; reference/reliability.md section 1c."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.hosts import BROKER_IDS
from chaos.machine_targets import kinds_of_machines
from chaos.targets import KINDS, Kind, KindRow, Target

CALM_MS = 5_000
PAUSE_MS = (500, 7_000)
LENGTH_MS = (1_500, 16_000)
ACTIVE_MAX = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, in ms since the plan began."""

    number: int
    begin_ms: int
    end_ms: int
    kind: Kind
    target: Target

    def __str__(self) -> str:
        length_s = (self.end_ms - self.begin_ms) / 1000
        when = f"{self.begin_ms / 1000:7.1f} s  for {length_s:4.1f} s"
        return f"#{self.number:<4}{when}  {self.kind.value:<10} {self.target.text}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a seed decides."""

    seed: int
    duration_ms: int
    small_disk: int
    """The broker whose data lies on a small disk."""
    preallocates: bool
    """Whether that broker sets space aside ahead of its logs' ends; if not, it is the write itself
    that meets the full disk, and soon."""
    faults: tuple[Fault, ...]
    cores: int = 0
    """Brokers of each machine; 0 for five brokers without a supervisor."""

    def counts(self) -> Counter[str]:
        """{kind: how many faults}."""
        return Counter(fault.kind.value for fault in self.faults)


def draw_plan(seed: int, *, duration_ms: int, cores: int = 0) -> Plan:
    """The same seed, duration and cores, the same plan."""
    rng = random.Random(f"chaos {seed}, cores {cores}" if cores else f"chaos {seed}")
    kinds = kinds_of_machines(cores) if cores else KINDS
    small_disk = rng.choice(BROKER_IDS)
    preallocates = random.Random(f"chaos {seed}, space").random() < 1 / 3
    faults: list[Fault] = []
    at = CALM_MS
    while True:
        at += rng.randint(*PAUSE_MS)
        length = rng.randint(*LENGTH_MS)
        if at + LENGTH_MS[0] > duration_ms:
            return Plan(seed, duration_ms, small_disk, preallocates, tuple(faults), cores)
        end = min(at + length, duration_ms)
        active = [fault for fault in faults if fault.end_ms >= at]
        if len(active) < ACTIVE_MAX:
            kind, target = _draw(rng, kinds, active, small_disk=small_disk)
            faults.append(Fault(len(faults) + 1, at, end, kind, target))


def _draw(
    rng: random.Random, kinds: Sequence[KindRow], active: Sequence[Fault], *, small_disk: int
) -> tuple[Kind, Target]:
    free = [
        number
        for number in BROKER_IDS
        if not any(number in fault.target.processes for fault in active)
    ]
    is_full = any(fault.target.full_disk for fault in active)
    while True:
        (row,) = rng.choices(kinds, [row.weight for row in kinds])
        target = row.draw(rng, free, small_disk)
        if target is not None and not (is_full and target.full_disk):
            return row.kind, target
