"""The kinds of faults of machines with several brokers each, and how each chooses its target.

How:    a table as in `targets`; the numbers are those of machines. What strikes the network or the
        disk strikes a machine as it strikes a broker."""

import random
from collections.abc import Sequence
from dataclasses import replace

from chaos.hosts import BROKER_IDS, HOSTS, broker_host, brokers_of
from chaos.targets import (
    KINDS,
    Draw,
    Kind,
    KindRow,
    Target,
    all_processes,
    both_ways,
    one_process,
    region_processes,
)

OF_PROCESSES = (Kind.KILL, Kind.PAUSE)


def kinds_of_machines(cores: int) -> tuple[KindRow, ...]:
    """The table for machines of so many brokers."""

    def one_broker(rng: random.Random, free: Sequence[int], _: int) -> Target | None:
        """Its machine is not free meanwhile: the supervisor has to start it again."""
        if not free:
            return None
        machine = rng.choice(free)
        broker = rng.choice(brokers_of(machine, cores))
        return Target(f"broker {broker}", processes=(machine,), brokers=(broker,))

    return (
        KindRow(Kind.KILL, 8, _as_machines(one_process)),
        KindRow(Kind.KILL, 2, _as_machines(all_processes)),
        KindRow(Kind.KILL_BROKER, 12, one_broker),
        KindRow(Kind.POWER_OFF, 10, _cut_off(one_process)),
        KindRow(Kind.POWER_OFF, 4, _cut_off(region_processes)),
        KindRow(Kind.POWER_OFF, 2, _cut_off(all_processes)),
        KindRow(Kind.PAUSE, 8, _as_machines(one_process)),
        KindRow(Kind.PAUSE, 3, _as_machines(region_processes)),
        *(
            row._replace(draw=_as_machines(row.draw))
            for row in KINDS
            if row.kind not in OF_PROCESSES
        ),
    )


def _as_machines(draw: Draw) -> Draw:
    """The same targets, in words for machines."""

    def drawn(rng: random.Random, free: Sequence[int], small_disk: int) -> Target | None:
        target = draw(rng, free, small_disk)
        return None if target is None else replace(target, text=_words(target.text))

    return drawn


def _cut_off(draw: Draw) -> Draw:
    """The same machines, which no packet reaches or leaves."""

    def drawn(rng: random.Random, free: Sequence[int], small_disk: int) -> Target | None:
        target = draw(rng, free, small_disk)
        if target is None:
            return None
        hosts = tuple(broker_host(one) for one in BROKER_IDS if one in target.processes)
        return replace(target, text=_words(target.text), links=both_ways(hosts, HOSTS))

    return drawn


def _words(text: str) -> str:
    return text.replace("broker", "machine")
