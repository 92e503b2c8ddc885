"""The report of a violation: what happened to the record, where, and which faults came in between.

Why:    a line that names a broken promise says where to look; the trace of a whole run is too long.
How:    runs the same scenario again, which gives the same history. After each event it looks at
        every replica of the group, and notes when the record is appended, flushed, committed, shown
        and cut there, and which broker leads. It adds what clients sent and were answered, and the
        trace's lines about hosts and links. The record's own lines are kept as far as possible; of
        the others the last ones.
Owns:   the lines. It reads replicas and the bytes of their files, and changes nothing.
Source: design section 10."""

import logging
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.base.errors import ApiError
from strandline.controller.names import OFFSETS_TOPIC
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.records.batch import iterate_headers
from strandline.records.record import decode_records
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.disk import HostDisk
from strandline.simulation.invariants.facts import (
    NO_EPOCH,
    Acknowledged,
    CommitBegun,
    CommitEnded,
    OffsetFetched,
    Produced,
    RecordsRead,
    Subject,
)
from strandline.simulation.invariants.invariants import short
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.trace import WORLD, LogIntoTrace
from strandline.simulation.world.world import World
from strandline.storage.layout import LOG

NOWHERE = Index(-1)
LINES_MAX = 40
OWN_LINES_MAX = 34
FIRST_LINES = 14
"""So many of the record's own lines are kept from the beginning where there are too many."""
LINES_BEFORE = 6
"""So many lines from before there was such a record: leaders, cuts of the log."""


def report_failure(scenario: Scenario, subject: Subject) -> list[str]:
    """Run a scenario that breaks a promise once more, and tell what happened to `subject`."""
    world = World(scenario)
    report = _FailureReport(world, subject)
    with LogIntoTrace(world.trace, logging.WARNING):
        world.run()
    return [*report.lines(), *report.ends]


@dataclass(slots=True)
class _View:
    """What was last seen of a replica. `index` is where it has the record; -1: it has not."""

    replica: Replica
    index: Index = NOWHERE
    epoch: Epoch = NO_EPOCH
    is_flushed: bool = False
    is_committed: bool = False
    is_shown: bool = False
    is_leader: bool = False


@dataclass(slots=True)
class _Line:
    """`position`: how many lines the trace had before. `values`: only if one of them matters.
    `is_context`: it is not about the record itself."""

    position: int
    text: str
    values: Sequence[bytes] | None
    is_context: bool


class _FailureReport:
    """See the module."""

    def __init__(self, world: World, subject: Subject) -> None:
        self.ends: list[str] = []
        """How each replica was when the promise was broken."""
        self._world = world
        self._subject = subject
        self._values = set(subject.values)
        self._lines: list[_Line] = []
        self._views: dict[BrokerId, _View] = {}
        self._seen: set[object] = set()
        world.checker.on_fact = self._on_fact
        self._stop = world.checker.on_violation
        world.checker.on_violation = self._on_violation
        self._end: int | None = None
        """How many lines the trace had when the promise was broken; None: all of it matters."""
        if subject.group is not None:
            world.scheduler.on_executed = self._look

    # ---- replicas ------------------------------------------------------------------------------

    def _look(self) -> None:
        """After an event: what has changed?"""
        group = self._subject.group
        assert group is not None
        for broker, host in self._world.hosts.items():
            program = host.program
            replica = None if program is None else program.replication.replicas.get(group)
            view = self._views.get(broker)
            if replica is None:
                self._views.pop(broker, None)
                continue
            if view is None or view.replica is not replica:
                view = self._views[broker] = _View(replica)
                self._add(broker, f"opens its log, {_extent(replica)}", is_context=True)
            self._look_at(broker, view)

    def _look_at(self, broker: BrokerId, view: _View) -> None:
        replica = view.replica
        if replica.is_leader != view.is_leader:
            view.is_leader = replica.is_leader
            verb = "leads" if view.is_leader else "leads no more"
            self._add(broker, f"{verb}, epoch {replica.epoch}, {_extent(replica)}", is_context=True)
        index = self._index_in(replica)
        epoch = NO_EPOCH if index < 0 else replica.log.epoch_of(index)
        if view.index >= 0 and (index, epoch) != (view.index, view.epoch):
            is_old = replica.log.start_index > view.index
            verb = "lets go of it" if is_old else "cuts it off"
            self._add(broker, f"{verb}: {_extent(replica)}")
            view.index = NOWHERE
        if index < 0:
            return
        if view.index < 0:
            view.index, view.epoch = index, epoch
            view.is_flushed = view.is_committed = view.is_shown = False
            self._add(broker, f"has {self._name(broker, replica, index)}")
        steps = []
        if not view.is_flushed and replica.log.flushed_index >= index:
            view.is_flushed = True
            steps.append("has flushed it")
        if not view.is_committed and replica.raft.commit >= index:
            view.is_committed = True
            steps.append("holds it to be committed")
        if not view.is_shown and replica.high_watermark > replica.log.offset_of(index):
            view.is_shown = True
            steps.append("shows it")
        if steps:
            self._add(broker, ", ".join(steps))

    def _index_in(self, replica: Replica) -> Index:
        """Where the record concerned is in this log; -1: nowhere."""
        log, subject = replica.log, self._subject
        if subject.offset is not None:
            has = log.start_offset <= subject.offset < log.end_offset
            return log.index_of(subject.offset) if has else NOWHERE
        if subject.index is not None and log.start_index <= subject.index <= log.last_index:
            return subject.index
        return NOWHERE

    def _name(self, broker: BrokerId, replica: Replica, index: Index) -> str:
        log = replica.log
        offset = log.offset_of(index)
        is_marker = offset >= log.end_offset or log.index_of(offset) != index
        place = f"index {index}, epoch {log.epoch_of(index)}"
        if is_marker:
            return f"a marker at {place}"
        disk = self._world.hosts[broker].disk
        value = _value_at(disk, log.directory, offset)
        if value is not None:
            self._values.add(value)
        return f"{short(value)} at offset {offset} ({place})"

    def _on_violation(self) -> None:
        if self._stop is not None:
            self._stop()
        if self._subject.group is not None:
            self._look()
        self._world.scheduler.on_executed = None
        if self._subject.group is not None:
            self._end = len(self._world.trace.lines)
        for broker, view in sorted(self._views.items()):
            replica = view.replica
            words = [f"epoch {replica.epoch}", f"leader {replica.leader_id}", _extent(replica)]
            words.append(f"flushed to index {replica.log.flushed_index}")
            words.append(f"committed to index {replica.raft.commit}")
            words.append(f"shows offsets below {replica.high_watermark}")
            if replica.failed is not None:
                words.append(f"failed: {replica.failed}")
            self.ends.append(f"  in the end broker {broker}: {', '.join(words)}")

    # ---- clients -------------------------------------------------------------------------------

    def _on_fact(self, fact: object) -> None:
        subject = self._subject
        if isinstance(fact, Produced) and fact.group == subject.group:
            what = f"sends {_names(fact.values)} to broker {fact.broker}"
            if fact.attempt > 1:
                what += f", attempt {fact.attempt}"
            self._add(fact.producer, what, fact.values)
        elif isinstance(fact, Acknowledged) and fact.group == subject.group:
            end = fact.base_offset + len(fact.values)
            what = f"tells {fact.producer} that {_names(fact.values)} is at offset "
            self._add(
                fact.broker, f"{what}{fact.base_offset}, below {end}; acks {fact.acks}", fact.values
            )
        elif isinstance(fact, RecordsRead) and fact.group == subject.group:
            self._on_read(fact)
        elif subject.offset is None and subject.index is None:
            self._on_commit(fact)

    def _on_read(self, fact: RecordsRead) -> None:
        for offset, value in fact.records:
            if offset == self._subject.offset and (fact.broker, value) not in self._seen:
                self._seen.add((fact.broker, value))
                self._add(fact.broker, f"gives {short(value)} at offset {offset} to a consumer")

    def _on_commit(self, fact: object) -> None:
        """How far the consumer group says it is."""
        group = self._subject.group
        if isinstance(fact, CommitBegun) and fact.group == group:
            self._add(WORLD, f"a consumer commits offset {fact.offset}")
        elif isinstance(fact, CommitEnded) and fact.group == group:
            what = "acknowledged" if fact.is_applied else "refused"
            self._add(WORLD, f"commit number {fact.number} is {what}")
        elif isinstance(fact, OffsetFetched) and fact.group == group:
            self._add(WORLD, f"a consumer gets the committed offset {fact.offset}")

    # ---- lines ---------------------------------------------------------------------------------

    def _add(
        self,
        where: BrokerId | str,
        what: str,
        values: Sequence[bytes] | None = None,
        *,
        is_context: bool = False,
    ) -> None:
        trace = self._world.trace
        name = where if isinstance(where, str) else f"broker {where}"
        text = trace.line(name, what)
        self._lines.append(_Line(len(trace.lines), text, values, is_context))

    def lines(self) -> list[str]:
        """At most `LINES_MAX`, in the order of time; what was left out is counted."""
        own: list[tuple[int, int, str]] = []
        context: list[tuple[int, int, str]] = []
        for number, one in enumerate(self._lines):
            if one.is_context:
                context.append((one.position, number, one.text))
            elif one.values is None or not self._values.isdisjoint(one.values):
                own.append((one.position, number, one.text))
        after = len(self._lines)
        context += [
            (position, after, text)
            for position, text in enumerate(self._world.trace.lines[: self._end])
            if self._concerns(text)
        ]
        total = len(own) + len(context)
        if len(own) > OWN_LINES_MAX:
            own = own[:FIRST_LINES] + own[FIRST_LINES - OWN_LINES_MAX :]
        context.sort()
        before = bisect_left(context, own[0]) if own else 0
        context = context[max(0, before - LINES_BEFORE) :]
        chosen = sorted(own + context[len(own) - LINES_MAX :])
        lines = [text for _, _, text in chosen]
        left_out = total - len(chosen)
        return [*lines, f"  ({left_out} lines left out)"] if left_out else lines

    def _concerns(self, text: str) -> bool:
        """Whether a line of the trace may matter here: not where it names another group."""
        plans = self._world.scenario.groups
        others = [plan.name for plan in plans if plan.group != self._subject.group]
        return not any(name in text for name in (*others, OFFSETS_TOPIC, "leads "))


def _extent(replica: Replica) -> str:
    log = replica.log
    return f"log of offsets {log.start_offset} to {log.end_offset}, last index {log.last_index}"


def _names(values: Sequence[bytes]) -> str:
    first = short(values[0])
    return first if len(values) == 1 else f"{first}-{short(values[-1]).rpartition('/')[2]}"


def _value_at(disk: HostDisk, directory: str, offset: Offset) -> bytes | None:
    """The record at an offset, as the log's files have it, read from outside: nothing of the log
    under test is touched."""
    for path, image in disk.tree.files():
        if path.startswith(f"{directory}/") and path.endswith(LOG):
            data = image.current.read(image.current.size, 0)
            try:
                for header in iterate_headers(data):
                    if not header.is_marker and header.base_offset <= offset < header.next_offset:
                        for record in decode_records(data, header.position):
                            if header.base_offset + record.offset_delta == offset:
                                return record.value
            except ApiError:
                continue  # Zeros behind the end, or damage: it is not in this file.
    return None
