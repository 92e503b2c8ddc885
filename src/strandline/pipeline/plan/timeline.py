"""What the controller sees over a simulated year: who is silent, who lacks data, what is repaired.

Why:    repair waits 15 minutes for a broker, and for an operator while a zone or region is down: a
        plan that repairs at once, or never, is worth nothing.
How:    Events in the order of time, between which nothing changes:

            loss       the domain's brokers fall silent; with their disks, they lose their data
            return     they are heard again, and copy what they lack (or everything)
            caught up  they count as in sync
            lost       silent for `broker.lost.after.ms`, and no zone or region of theirs is down

        Whether a zone or region is down is decided by the controller's own marks
        (`controller.outages.marks`), so also which repair is held, and when it ends
        (`outage.hold.max.ms`). A broker that is still silent when its zone returns gets the full
        time from then. `controller.outages.judging` says the same second by second; a test
        compares them.
Owns:   nothing; yields steps. One timeline serves every policy.
Source: decisions 0010 and 0018."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from strandline.config.cluster import NO_LIMIT
from strandline.controller.outages.domains import domains_of, members
from strandline.controller.outages.marks import Share, configured, is_down
from strandline.pipeline.plan.assumptions import HOURS_A_YEAR, SECONDS_AN_HOUR, Assumptions
from strandline.pipeline.plan.domains import LossDomain
from strandline.pipeline.plan.losses import Loss
from strandline.placement.topology.universe import Universe, bits_of

MS_AN_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class Step:
    """From `at_h` on. Masks are over the universe's bits."""

    at_h: float
    silent: int
    """Brokers that are not heard."""
    absent: int
    """Those, and those that are heard and still lack data."""
    emptied: int
    """Brokers whose data is gone and not copied back yet."""
    lost: int = 0
    """Brokers that are lost from this moment on: their replicas are made anew elsewhere."""
    returned: int = 0
    """Brokers that are heard from this moment on."""


@dataclass(slots=True)
class _Broker:
    silent_since_h: float = 0.0
    until_h: float = 0.0
    caught_up_h: float = 0.0
    is_lost: bool = False


@dataclass(slots=True)
class _Watched:
    """A zone or region, as the controller judges it."""

    mask: int
    is_down: bool = False
    since_h: float = 0.0
    back_h: float = field(default=float("-inf"))


class Timelines:
    """Makes timelines for one cluster and one set of assumptions."""

    def __init__(
        self,
        universe: Universe,
        domains: Sequence[LossDomain],
        assumptions: Assumptions,
    ) -> None:
        config, recovery = assumptions.config(), assumptions.recovery
        self._masks = [one.mask for one in domains]
        self._lost_after_h = config.broker_lost_after_ms / MS_AN_HOUR
        hold = config.outage_hold_max_ms
        self._hold_max_h = float("inf") if hold == NO_LIMIT else hold / MS_AN_HOUR
        self._marks_of = configured(config)
        self._copy_h = recovery.broker_gb * 1_000 / recovery.copy_mb_per_s / SECONDS_AN_HOUR
        # A broker gets its data within `retained_hours`, and a copy of all of it in `_copy_h`.
        self._catch_up_ratio = self._copy_h / assumptions.traffic.retained_hours
        labels = {one.id: one.labels for one in universe.candidates}
        self._members = {
            domain: universe.mask(universe.index[one] for one in inside)
            for domain, inside in members(labels).items()
        }
        self._domains_of = [domains_of(one.labels) for one in universe.candidates]

    def steps(self, losses: Iterable[Loss]) -> Iterator[Step]:
        """The steps of one year, the first at the first loss."""
        return _Run(self, losses).steps()


class _Run:
    """One year. `_due`: [(time, number, kind, mask)] of everything that is to come."""

    def __init__(self, made_for: Timelines, losses: Iterable[Loss]) -> None:
        self._of = made_for
        self._brokers: dict[int, _Broker] = {}
        self._watched = {domain: _Watched(mask) for domain, mask in made_for._members.items()}
        self._silent = self._absent = self._emptied = 0
        self._number = 0
        self._due: list[tuple[float, int, str, int, Loss | None]] = []
        for loss in losses:
            self._add(loss.at_h, "loss", made_for._masks[loss.domain], loss)

    def _add(self, at_h: float, kind: str, mask: int, loss: Loss | None = None) -> None:
        if at_h < HOURS_A_YEAR:
            heapq.heappush(self._due, (at_h, self._number, kind, mask, loss))
            self._number += 1

    def steps(self) -> Iterator[Step]:
        """See `Timelines.steps`."""
        while self._due:
            at_h, _, kind, mask, loss = heapq.heappop(self._due)
            lost = returned = 0
            if kind == "loss":
                assert loss is not None
                self._on_loss(at_h, mask, loss)
            elif kind == "return":
                returned = self._on_return(at_h, mask)
            elif kind == "caught up":
                self._on_caught_up(at_h, mask)
            else:
                lost = self._on_look(at_h, mask)
            if loss or returned or lost or kind == "caught up":
                yield Step(at_h, self._silent, self._absent, self._emptied, lost, returned)

    def _on_loss(self, at_h: float, mask: int, loss: Loss) -> None:
        until_h = at_h + loss.hours
        for bit in bits_of(mask):
            one = self._brokers.setdefault(bit, _Broker())
            if not self._silent >> bit & 1:
                one.silent_since_h, one.is_lost = at_h, False
            one.until_h = max(one.until_h, until_h)
        self._silent |= mask
        self._absent |= mask
        if loss.destroyed:
            self._emptied |= mask
        self._add(until_h, "return", mask)
        self._judge(at_h, mask)
        self._add(at_h + self._of._lost_after_h, "look", mask)

    def _on_return(self, at_h: float, mask: int) -> int:
        returned = 0
        caught_up: dict[float, int] = {}
        for bit in bits_of(mask & self._silent):
            one = self._brokers[bit]
            if one.until_h > at_h:
                continue
            returned |= 1 << bit
            if self._emptied >> bit & 1:
                lag_h = self._of._copy_h
            else:
                lag_h = (at_h - one.silent_since_h) * self._of._catch_up_ratio
            one.caught_up_h = at_h + lag_h
            caught_up[one.caught_up_h] = caught_up.get(one.caught_up_h, 0) | 1 << bit
        for caught_up_h, some in caught_up.items():
            self._add(caught_up_h, "caught up", some)
        self._silent &= ~returned
        if returned:
            self._judge(at_h, returned)
        return returned

    def _on_caught_up(self, at_h: float, mask: int) -> None:
        for bit in bits_of(mask & ~self._silent):
            if self._brokers[bit].caught_up_h <= at_h:
                self._absent &= ~(1 << bit)
                self._emptied &= ~(1 << bit)

    def _on_look(self, at_h: float, mask: int) -> int:
        lost = 0
        for bit in bits_of(mask & self._silent):
            one = self._brokers[bit]
            if one.is_lost or self._is_held(bit, at_h):
                continue
            since_h = max(
                [one.silent_since_h]
                + [self._watched[domain].back_h for domain in self._of._domains_of[bit]]
            )
            # The times were added before; a sum may round a little below them.
            if at_h - since_h >= self._of._lost_after_h * (1 - 1e-9):
                one.is_lost = True
                lost |= 1 << bit
        return lost

    def _is_held(self, bit: int, at_h: float) -> bool:
        for domain in self._of._domains_of[bit]:
            one = self._watched[domain]
            if one.is_down and at_h - one.since_h < self._of._hold_max_h * (1 - 1e-9):
                return True
        return False

    def _judge(self, at_h: float, changed: int) -> None:
        """Judge the zones and regions of these brokers anew."""
        for domain, one in self._watched.items():
            if not one.mask & changed:
                continue
            share = Share(one.mask.bit_count(), (one.mask & self._silent).bit_count())
            was_down = one.is_down
            one.is_down = is_down(share, self._of._marks_of(domain), was_down=was_down)
            if one.is_down and not was_down:
                one.since_h = at_h
                self._add(at_h + self._of._hold_max_h, "look", one.mask)
            elif was_down and not one.is_down:
                one.back_h = at_h
                self._add(at_h + self._of._lost_after_h, "look", one.mask)
