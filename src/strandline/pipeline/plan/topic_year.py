"""One simulated year of a topic under one policy: its partitions follow the controller's timeline.

Why:    losses overlap: voters leave, observers stand in, replicas move, then the next loss comes.
How:    At each step the partitions with a changed broker ask `Behaviour` what follows from the
        replicas that vote and those that are absent. Between steps nothing changes, so time is
        added up by state. Of two kinds of event the expected number is added up as well: a further
        loss comes at a known rate, so `rate x time in danger` estimates rare events without waiting
        for one (the compensator of a Poisson process; it has the same mean and less variance).
            Data is lost for good only with disks. Then the partition waits until an operator
        declares the loss, and continues on the replicas that are there.
Owns:   the state of the partitions, for one year.
Source: decision 0053; Bremaud, "Point Processes and Queues" (1981), chapter 2."""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from strandline.model.cluster import Roles
from strandline.pipeline.plan.assumptions import HOURS_A_YEAR, SECONDS_AN_HOUR, Recovery
from strandline.pipeline.plan.behaviour import Answer
from strandline.pipeline.plan.domains import LossDomain
from strandline.pipeline.plan.repairs import Moved, Repairs
from strandline.pipeline.plan.shapes import Shape, Shapes
from strandline.pipeline.plan.stops import Draw, Moment
from strandline.pipeline.plan.tally import Tally
from strandline.pipeline.plan.timeline import Step
from strandline.pipeline.plan.traffic import CopyPrices
from strandline.placement.explain.copies import Copy, Limit, cost_of
from strandline.placement.survival.course import Course
from strandline.placement.topology.universe import bits_of

_IN_FLIGHT_S = 0.1
"""Records that were acknowledged so shortly before a loss may be on a write quorum only."""
_RECOVERY_KEY = "replication.recovery_bytes_per_s"
_BYTES_A_GB = 10**9
_MOVED, _DECLARED = "moved", "declared"


@dataclass(frozen=True, slots=True)
class TopicSize:
    """Of one partition: its log, and what is produced to it."""

    log_gb: float
    produced_gb_per_h: float


@dataclass(frozen=True, slots=True)
class Copying:
    """What the copies of one partition take."""

    hours: float
    gb: float
    cross_region_gb: float
    cost: float


@dataclass(slots=True, eq=False)
class _Partition:
    """`weight`: the share of the topic's partitions that have these replicas; `count`: how many."""

    home: Shape
    weight: float
    count: int
    shape: Shape
    acting: int
    answer: Answer
    fatal: int = 0
    since_h: float = 0.0
    written_h: float = 0.0
    """Hours in which it was written."""
    left_at_h: dict[int, float] = field(default_factory=dict)
    """{position that is absent: `written_h` when it fell behind}"""
    is_short: bool = False
    """Whether acknowledged records may be lost for good, and no operator has declared it."""
    declares_h: float = 0.0
    moving: Moved | None = None
    leader: int = 0
    """Its position."""
    absent: int = 0
    """Positions that are absent."""

    @property
    def is_writable(self) -> bool:
        return self.answer.is_writable and not self.is_short


class TopicYears:
    """Runs years of one topic; answers are kept from one year to the next."""

    def __init__(
        self,
        partitions: Sequence[Roles],
        shapes: Shapes,
        repairs: Repairs,
        *,
        domains: Sequence[LossDomain],
        recovery: Recovery,
        size: TopicSize,
        prices: CopyPrices,
    ) -> None:
        self.partitions = partitions
        self.shapes = shapes
        self.repairs = repairs
        self.recovery = recovery
        self.size = size
        self.prices = prices
        self.destroys_a_year = [one.rate.per_year * one.rate.destroyed for one in domains]
        self._rates: dict[int, float] = {}
        self._copying: dict[Moved, Copying] = {}

    def run(self, steps: Iterable[Step], draw: Draw | None = None) -> Tally:
        """The year that these steps make. `draw`: is offered each span in which a further loss
        would stop a partition."""
        return _Year(self, self.partitions, draw).run(steps)

    def stop_at(self, at_h: float, partition: Roles, steps: Iterable[Step]) -> tuple[float, float]:
        """Of a partition that the step at `at_h` stops: for how many hours, and for how many of
        these it has no leader."""
        return _Year(self, [partition]).stop_at(at_h, steps)

    def rate_of(self, fatal: int) -> float:
        """Losses a year of these domains' disks."""
        if fatal not in self._rates:
            self._rates[fatal] = sum(self.destroys_a_year[one] for one in bits_of(fatal))
        return self._rates[fatal]

    def copying(self, moved: Moved) -> Copying:
        """What the copies of one partition take."""
        if moved not in self._copying:
            self._copying[moved] = self._cost_of(moved)
        return self._copying[moved]

    def _cost_of(self, moved: Moved) -> Copying:
        log_gb = self.size.log_gb
        copies = [
            Copy(source, target, int(log_gb * _BYTES_A_GB), self.prices.crosses(source, target))
            for source, target in moved.copies
        ]
        rate = int(self.recovery.copy_mb_per_s * 1_000_000)
        limits = [Limit(_RECOVERY_KEY, rate, source=one) for one in {one.source for one in copies}]
        found = cost_of(copies, limits)
        seconds = 0.0 if found.slowest is None else found.slowest.seconds or 0.0
        return Copying(
            hours=seconds / SECONDS_AN_HOUR,
            gb=found.bytes / _BYTES_A_GB,
            cross_region_gb=found.cross_region_bytes / _BYTES_A_GB,
            cost=sum(log_gb * self.prices.per_gb(one.source, one.target) for one in copies),
        )

    def delay_h(self, course: Course, *, is_leader_lost: bool) -> float:
        """How long writes stop, although they go on by themselves."""
        seconds = self.recovery.election_s if is_leader_lost else 0.0
        if course is Course.ARBITRATION:
            seconds = self.recovery.arbitration_s
        elif course is Course.STANDS_IN:
            seconds += self.recovery.promotion_s
        return seconds / SECONDS_AN_HOUR


class _Year:
    """One year. `_due`: [(time, number, partition, what)], moves that end and declarations."""

    def __init__(
        self, topic: TopicYears, partitions: Sequence[Roles], draw: Draw | None = None
    ) -> None:
        self._topic = topic
        self._draw = draw
        self._tally = Tally()
        self._partitions = [
            self._begin(one, count, count / len(partitions))
            for one, count in Counter(partitions).items()
        ]
        self._absent = self._emptied = self._lost = self._down = 0
        self._due: list[tuple[float, int, _Partition, str]] = []
        self._number = 0
        self._fatal = self._union()
        self._fatal_since_h = 0.0
        self._is_fatal_new = False
        """Whether a partition's `fatal` has changed since it was united."""
        self._stopped = 0
        """How many partitions are stopped, replicas that are alike as one."""
        self._was_stopped = False
        self._stopped_since_h = 0.0

    def _begin(self, roles: Roles, count: int, weight: float) -> _Partition:
        shape = self._topic.shapes.of(roles)
        own = shape.behaviour.own
        return _Partition(
            home=shape,
            weight=weight,
            count=count,
            shape=shape,
            acting=own,
            answer=shape.behaviour.after(own, 0),
            fatal=shape.fatal(shape.behaviour.danger(own, 0)),
        )

    def run(self, steps: Iterable[Step]) -> Tally:
        """The whole year."""
        for step in steps:
            self._until(step.at_h)
            self._on_step(step)
        self._until(HOURS_A_YEAR)
        for one in self._partitions:
            self._add_time(one, HOURS_A_YEAR)
        self._note_changes(HOURS_A_YEAR, is_end=True)
        return self._tally

    def stop_at(self, at_h: float, steps: Iterable[Step]) -> tuple[float, float]:
        """See `TopicYears.stop_at`."""
        (one,) = self._partitions
        tally, before = self._tally, (0.0, 0.0)
        has_begun = False
        for step in steps:
            self._until(step.at_h)
            if has_begun and one.is_writable:
                break
            self._on_step(step)
            if step.at_h == at_h:
                has_begun, before = True, (tally.stopped_h, tally.unreadable_h)
        else:
            self._until(HOURS_A_YEAR)
        if not one.is_writable:
            self._add_time(one, HOURS_A_YEAR)
        return tally.stopped_h - before[0], tally.unreadable_h - before[1]

    def _until(self, at_h: float) -> None:
        """What is due by then."""
        while self._due and self._due[0][0] <= at_h:
            due_h, _, one, what = heapq.heappop(self._due)
            if what == _MOVED:
                self._on_moved(one, due_h)
            self._update(one, due_h)
            self._note_changes(due_h)

    def _add(self, at_h: float, one: _Partition, what: str) -> None:
        heapq.heappush(self._due, (at_h, self._number, one, what))
        self._number += 1

    def _on_step(self, step: Step) -> None:
        changed = (step.absent ^ self._absent) | (step.emptied ^ self._emptied) | step.lost
        self._lost = (self._lost | step.lost) & ~step.returned
        self._absent, self._emptied = step.absent, step.emptied
        down = self._topic.shapes.down(step.silent)
        is_other_down, self._down = down != self._down, down
        losses = self._tally.losses_partitions
        for one in self._partitions:
            if is_other_down or (one.shape.core | one.home.replicas) & changed:
                self._update(one, step.at_h)
        if self._tally.losses_partitions > losses:
            self._tally.losses_topic += 1
        self._note_changes(step.at_h)

    # ---- one partition ---------------------------------------------------------------------------

    def _update(self, one: _Partition, at_h: float) -> None:
        """What follows from the brokers that are absent now."""
        self._add_time(one, at_h)
        shape, behaviour = one.shape, one.shape.behaviour
        absent, emptied = shape.local(self._absent, self._down), shape.local(self._emptied)
        self._note_left(one, absent)
        if behaviour.danger(one.acting, emptied).is_short and not one.is_short:
            self._on_short(one, at_h, emptied)
        if one.is_short and at_h >= one.declares_h:
            self._declare(one, absent)
        was_writable = one.is_writable
        answer = behaviour.after(one.acting, absent)
        one.answer, one.acting, one.absent = answer, answer.acting, absent
        fatal = 0 if one.is_short else shape.fatal(behaviour.danger(one.acting, emptied))
        self._is_fatal_new |= fatal != one.fatal
        one.fatal = fatal
        leads = one.acting & ~absent
        is_leader_lost = not leads >> one.leader & 1
        if is_leader_lost or leads & 1:  # The preferred leader leads again without a pause.
            one.leader = max(0, (leads & -leads).bit_length() - 1)
        if one.is_writable:
            is_new = is_leader_lost or not was_writable
            self._pause(one, answer.course, is_leader_lost=is_new)
            self._mend(one, at_h)
        if was_writable != one.is_writable:
            self._tally.stops += one.weight * was_writable
            self._stopped += 1 if was_writable else -1

    def _pause(self, one: _Partition, course: Course, *, is_leader_lost: bool) -> None:
        delay_h = self._topic.delay_h(course, is_leader_lost=is_leader_lost) * one.weight
        self._tally.failover_h += delay_h
        if is_leader_lost:
            self._tally.election_h += delay_h

    def _add_time(self, one: _Partition, at_h: float) -> None:
        """Count the time since the last change."""
        hours = at_h - one.since_h
        one.since_h = at_h
        weighted_h, tally, answer = hours * one.weight, self._tally, one.answer
        if one.is_short:
            tally.stopped_h += weighted_h
            tally.unreadable_h += weighted_h
            return
        if answer.is_writable:
            one.written_h += hours
            if answer.stops_a_year:
                stops = answer.stops_a_year * weighted_h / HOURS_A_YEAR
                tally.stops_expected += stops
                if self._draw is not None:
                    state = Moment(one.home.roles, at_h, one.shape, one.acting, one.absent)
                    self._draw.offer(stops, at_h - hours, at_h, state)
        else:
            tally.stopped_h += weighted_h
            if not answer.is_readable:
                tally.unreadable_h += weighted_h
        if answer.is_thin:
            tally.thin_h += weighted_h

    def _note_left(self, one: _Partition, absent: int) -> None:
        """Note where each replica that is absent fell behind, by its position."""
        for position in range(len(one.shape.roles.all)):
            if not absent >> position & 1:
                one.left_at_h.pop(position, None)
            elif position not in one.left_at_h:
                one.left_at_h[position] = one.written_h

    def _on_short(self, one: _Partition, at_h: float, emptied: int) -> None:
        """Disks are gone that may have had acknowledged records of which no other has a copy."""
        one.is_short = True
        one.declares_h = at_h + self._topic.recovery.declare_hours
        self._add(one.declares_h, one, _DECLARED)
        lags = [
            one.written_h - one.left_at_h.get(position, one.written_h)
            for position in range(len(one.shape.roles.all))
            if not emptied >> position & 1
        ]
        size = self._topic.size
        lost_gb = size.log_gb
        if lags:
            lag_h = min(lags) + _IN_FLIGHT_S / SECONDS_AN_HOUR
            lost_gb = min(lost_gb, lag_h * size.produced_gb_per_h)
        self._tally.losses_partitions += one.weight
        self._tally.lost_gb += lost_gb * one.count

    def _declare(self, one: _Partition, absent: int) -> None:
        """The operator gives up what is gone: the voters that are there go on, else observers."""
        behaviour = one.shape.behaviour
        present = behaviour.replicas & ~absent
        survivors = present & behaviour.own or present
        if survivors:
            one.acting, one.is_short = survivors, False

    # ---- replicas that move ----------------------------------------------------------------------

    def _mend(self, one: _Partition, at_h: float) -> None:
        """Begin to copy replicas of lost brokers elsewhere, or back once all are there again."""
        if one.moving is not None:
            return
        moved: Moved | None = None
        if one.shape.replicas & self._lost:
            moved = self._topic.repairs.after(one.shape.roles, self._lost, self._absent)
        elif one.shape is not one.home and not one.home.replicas & self._absent:
            moved = self._topic.repairs.back(one.shape.roles, one.home.roles)
        if moved is None:
            return
        one.moving = moved
        self._add(at_h + self._count_copies(moved, one.count), one, _MOVED)

    def _count_copies(self, moved: Moved, count: int) -> float:
        """Count bytes and money; how many hours it takes."""
        found, tally = self._topic.copying(moved), self._tally
        tally.repair_gb += found.gb * count
        tally.repair_cross_region_gb += found.cross_region_gb * count
        tally.repair_cost += found.cost * count
        return found.hours

    def _on_moved(self, one: _Partition, at_h: float) -> None:
        """The replicas are elsewhere: those that voted and stay do, and new voters join."""
        assert one.moving is not None
        self._add_time(one, at_h)
        before, after = one.shape, self._topic.shapes.of(one.moving.roles)
        one.moving = None
        old = {bit: position for position, bit in enumerate(before.bits)}
        acting = 0
        left_at_h = {}
        for position, bit in enumerate(after.bits[: len(after.roles.all)]):
            was = old.get(bit)
            stays = was is not None and was < len(before.roles.all)
            votes = stays and was is not None and bool(one.acting >> was & 1)
            is_new_voter = not stays and position < len(after.roles.voters)
            acting |= (votes or is_new_voter) << position
            if stays and was in one.left_at_h:
                left_at_h[position] = one.left_at_h[was]
        one.shape, one.acting, one.left_at_h = after, acting, left_at_h
        one.leader = 0
        one.absent = after.local(self._absent, self._down)

    # ---- the topic -------------------------------------------------------------------------------

    def _union(self) -> int:
        found = 0
        for one in self._partitions:
            found |= one.fatal
        return found

    def _note_changes(self, at_h: float, *, is_end: bool = False) -> None:
        """Count the topic's own time since its last change."""
        if self._is_fatal_new or is_end:
            self._is_fatal_new = False
            rate = self._topic.rate_of(self._fatal)
            hours = at_h - self._fatal_since_h
            self._tally.losses_topic_expected += rate * hours / HOURS_A_YEAR
            self._fatal, self._fatal_since_h = self._union(), at_h
        is_stopped = self._stopped > 0
        if is_stopped != self._was_stopped or is_end:
            if self._was_stopped:
                self._tally.topic_stopped_h += at_h - self._stopped_since_h
            self._was_stopped, self._stopped_since_h = is_stopped, at_h
