"""The kinds of faults, and how each chooses its target.

How:    a table of rows: kind, weight, and a function that draws a target; None if every possible
        target is down already.
Source: reference/reliability.md section 1c."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from chaos.hosts import (
    BROKER_IDS,
    BROKERS,
    HOSTS,
    REGIONS,
    Host,
    Link,
    broker_host,
    hosts_in,
    links_between,
)


class Kind(Enum):
    """What is done."""

    KILL = "kill -9"
    """Of a broker; of a supervisor, where machines have one."""
    KILL_BROKER = "kill one"
    """Of a broker alone, which its supervisor starts again."""
    POWER_OFF = "power-off"
    PAUSE = "SIGSTOP"
    FULL_DISK = "full disk"
    CUT = "cut"
    DELAY = "delay"
    LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a fault strikes, in words and in detail."""

    text: str
    processes: tuple[int, ...] = ()
    """Brokers that are killed or stopped; machines, where they have a supervisor."""
    brokers: tuple[int, ...] = ()
    """Brokers that are killed alone, and started again by their supervisor."""
    full_disk: int = 0
    """The broker whose disk is filled; 0 for none."""
    links: tuple[Link, ...] = ()
    amount: float = 0.0
    """More delay in ms one way, or the share of packets that is lost."""


Draw = Callable[[random.Random, Sequence[int], int], Target | None]


class KindRow(NamedTuple):
    """How likely a kind is. `draw`: (randomness, brokers that run, broker with the small disk)."""

    kind: Kind
    weight: int
    draw: Draw


def one_process(rng: random.Random, free: Sequence[int], _: int) -> Target | None:
    """One of those that run."""
    if not free:
        return None
    number = rng.choice(free)
    return Target(f"broker {number}", processes=(number,))


def region_processes(rng: random.Random, free: Sequence[int], _: int) -> Target | None:
    """All of a region, if all run."""
    region = rng.choice(REGIONS)
    numbers = tuple(host.broker for host in BROKERS if host.region == region)
    if not set(numbers) <= set(free):
        return None
    return Target(f"region {region}: brokers {_list(numbers)}", processes=numbers)


def all_processes(_: random.Random, free: Sequence[int], __: int) -> Target | None:
    """All there are, if all run."""
    if len(free) < len(BROKER_IDS):
        return None
    return Target("all brokers", processes=BROKER_IDS)


def _full_disk(_: random.Random, __: Sequence[int], small_disk: int) -> Target:
    return Target(f"broker {small_disk}", full_disk=small_disk)


def _one_way_of_brokers(rng: random.Random, _: Sequence[int], __: int) -> Target:
    one, other = rng.sample(BROKERS, 2)
    return Target(
        f"one way, broker {one.broker} to broker {other.broker}",
        links=links_between((one,), (other,)),
    )


def _one_way_of_regions(rng: random.Random, _: Sequence[int], __: int) -> Target:
    one, other = rng.sample(REGIONS, 2)
    return Target(f"one way, {one} to {other}", links=links_between(hosts_in(one), hosts_in(other)))


def _deaf_or_dumb(rng: random.Random, _: Sequence[int], __: int) -> Target:
    """A broker that hears nobody, or that nobody hears."""
    host = rng.choice(BROKERS)
    if rng.random() < 0.5:
        return Target(f"one way, all to broker {host.broker}", links=links_between(HOSTS, (host,)))
    return Target(f"one way, broker {host.broker} to all", links=links_between((host,), HOSTS))


def _regions_apart(rng: random.Random, _: Sequence[int], __: int) -> Target:
    one, other = rng.sample(REGIONS, 2)
    return Target(f"both ways, {one} and {other}", links=both_ways(hosts_in(one), hosts_in(other)))


def _region_cut_off(rng: random.Random, _: Sequence[int], __: int) -> Target:
    region = rng.choice(REGIONS)
    inside = hosts_in(region)
    outside = tuple(host for host in HOSTS if host.region != region)
    return Target(f"region {region} cut off", links=both_ways(inside, outside))


def _broker_cut_off(rng: random.Random, _: Sequence[int], __: int) -> Target:
    """From the other brokers; every second time its clients reach it still."""
    number = rng.choice(BROKER_IDS)
    if rng.random() < 0.5:
        return Target(
            f"broker {number} cut off from brokers",
            links=both_ways((broker_host(number),), BROKERS),
        )
    return Target(f"broker {number} cut off", links=both_ways((broker_host(number),), HOSTS))


def _delay(rng: random.Random, _: Sequence[int], __: int) -> Target:
    name, links = _some_links(rng)
    delay_ms = rng.choice((50, 150, 400))
    return Target(f"{name} +{delay_ms} ms each way", links=links, amount=delay_ms)


def _loss(rng: random.Random, _: Sequence[int], __: int) -> Target:
    name, links = _some_links(rng)
    share = rng.choice((0.01, 0.05, 0.2))
    return Target(f"{name} {share:.0%} each way", links=links, amount=share)


def _some_links(rng: random.Random) -> tuple[str, tuple[Link, ...]]:
    if rng.random() < 0.5:
        one, other = rng.sample(REGIONS, 2)
        return f"{one} and {other}", both_ways(hosts_in(one), hosts_in(other))
    number = rng.choice(BROKER_IDS)
    return f"broker {number} and all", both_ways((broker_host(number),), HOSTS)


def both_ways(some: tuple[Host, ...], others: tuple[Host, ...]) -> tuple[Link, ...]:
    """Every link between two groups of hosts."""
    return links_between(some, others) + links_between(others, some)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


KINDS = (
    KindRow(Kind.KILL, 12, one_process),
    KindRow(Kind.KILL, 6, region_processes),
    KindRow(Kind.KILL, 3, all_processes),
    KindRow(Kind.PAUSE, 12, one_process),
    KindRow(Kind.PAUSE, 4, region_processes),
    KindRow(Kind.PAUSE, 2, all_processes),
    KindRow(Kind.FULL_DISK, 7, _full_disk),
    KindRow(Kind.CUT, 5, _one_way_of_brokers),
    KindRow(Kind.CUT, 5, _one_way_of_regions),
    KindRow(Kind.CUT, 5, _deaf_or_dumb),
    KindRow(Kind.CUT, 5, _regions_apart),
    KindRow(Kind.CUT, 6, _region_cut_off),
    KindRow(Kind.CUT, 6, _broker_cut_off),
    KindRow(Kind.DELAY, 8, _delay),
    KindRow(Kind.LOSS, 8, _loss),
)
