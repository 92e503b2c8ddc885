"""The promises that a run is judged by: the simulator's own classes, and some of its own.

Why:    one promise, one class, one name, whether the world is simulated or real.
How:    facts in the order of time; the first violation of each promise is kept. The simulator
        checks what cannot be seen from outside a broker (marks as they move, heartbeats).
Owns:   the verdict of one run.
Source: `strandline.simulation.invariants.invariants`, `committed_offsets`;
        docs/internals/simulation.md."""

from collections.abc import Callable, Sequence

from chaos.replica_logs import ProducedBatch
from strandline.model.ids import GroupId, Offset
from strandline.simulation.invariants.committed_offsets import GroupOffsetsMonotonic
from strandline.simulation.invariants.facts import Acknowledged, LogAudited, RecordsRead, Subject
from strandline.simulation.invariants.invariants import (
    QUORUM_ACK,
    CommittedPrefixEqual,
    Invariant,
    InvariantError,
    LogMatching,
    NoAcknowledgedRecordLost,
    NoReadOfWhatDisappeared,
    NoStaleLeaderRead,
    OffsetsDense,
    SingleLeaderPerEpoch,
    records_of,
)


class OrderPerProducer(Invariant):
    """What one producer had acknowledged with acks=all on a partition stands in its order."""

    def __init__(self) -> None:
        self._last: dict[tuple[GroupId, str], tuple[int, Offset]] = {}

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """A later record has a higher offset."""
        if fact.acks != QUORUM_ACK:
            return
        for number, value in enumerate(fact.values):
            found = (int(value.split(b"/")[1]), Offset(fact.base_offset + number))
            last = self._last.get((fact.group, fact.producer))
            if last is not None and (found[0] < last[0]) != (found[1] < last[1]):
                raise self.broken(
                    f"group {fact.group}: record {found[0]} of {fact.producer} was acknowledged at "
                    f"offset {found[1]}, record {last[0]} at offset {last[1]}",
                    Subject(fact.group, found[1], values=(value,)),
                )
            if last is None or found > last:
                self._last[fact.group, fact.producer] = found


class NoDuplicateFromIdempotentProducer(Invariant):
    """Each record of an idempotent producer is in the log once in an epoch, and in its order.

    A client may begin a new epoch by itself, and write again what it has no answer for: after
    OUT_OF_ORDER_SEQUENCE_NUMBER librdkafka does, everywhere. `rewritten_count` tells how often."""

    def __init__(self, producers: Sequence[str]) -> None:
        self._producers = set(producers)
        self._rewritten: set[tuple[GroupId, str]] = set()

    @property
    def rewritten_count(self) -> int:
        """Records that a client wrote again in a new epoch."""
        return len(self._rewritten)

    def on_log_audited(self, fact: LogAudited) -> None:
        """Numbers grow; no epoch comes back."""
        last: dict[str, tuple[tuple[int, int], int]] = {}
        epochs: set[tuple[int, int]] = set()
        highest: dict[str, int] = {}
        for batch in fact.batches:
            assert isinstance(batch, ProducedBatch)
            for offset, value in batch.records:
                name, number = value.decode().split("/")[:2]
                if name not in self._producers:
                    continue
                epoch, before = last.get(name, (batch.producer, -1))
                is_new = epoch != batch.producer
                if (is_new and batch.producer in epochs) or (not is_new and int(number) <= before):
                    raise self.broken(
                        f"group {fact.group}: broker {fact.broker} has {name}/{number} of "
                        f"(producer, epoch) {batch.producer} at offset {offset} after {before} "
                        f"of {epoch}",
                        Subject(fact.group, offset, values=(value,)),
                    )
                if int(number) <= highest.get(name, -1):
                    self._rewritten.add((fact.group, f"{name}/{number}"))
                epochs.add(batch.producer)
                last[name] = (batch.producer, int(number))
                highest[name] = max(int(number), highest.get(name, -1))


class NoUnplacedRecordLost(Invariant):
    """A record that was acknowledged with acks=all, nobody said at which offset, is in the log."""

    def __init__(self) -> None:
        self._acknowledged: dict[GroupId, set[bytes]] = {}

    def add(self, group: GroupId, value: bytes) -> None:
        """It has to be there in the end."""
        self._acknowledged.setdefault(group, set()).add(value)

    def on_log_audited(self, fact: LogAudited) -> None:
        """In every replica."""
        known = self._acknowledged.get(fact.group)
        if known and fact.is_final:
            missing = known.difference(records_of(fact).values())
            if missing:
                raise self.broken(
                    f"group {fact.group}: {min(missing).decode()} was acknowledged; broker "
                    f"{fact.broker} does not have it",
                    Subject(fact.group, values=(min(missing),)),
                )


class RefusedRecordNotWritten(Invariant):
    """A record whose only attempt was refused for want of a right is in no log."""

    def __init__(self) -> None:
        self.refused_count = 0
        self._refused: dict[GroupId, set[bytes]] = {}

    def add(self, group: GroupId, value: bytes) -> None:
        """It was refused."""
        self.refused_count += 1
        self._refused.setdefault(group, set()).add(value)

    def on_log_audited(self, fact: LogAudited) -> None:
        """In no replica."""
        known = self._refused.get(fact.group)
        found = known.intersection(records_of(fact).values()) if known else ()
        if found:
            raise self.broken(
                f"group {fact.group}: {min(found).decode()} was refused; broker {fact.broker} "
                "has it",
                Subject(fact.group, values=(min(found),)),
            )


class NothingIsLetGo(Invariant):
    """No topic here has a retention that is over within a run, nor does anybody delete records."""

    def on_log_audited(self, fact: LogAudited) -> None:
        """All others are silent about what is before a log's start."""
        if fact.start_offset > 0:
            raise self.broken(
                f"group {fact.group}: the log of broker {fact.broker} begins at "
                f"{fact.start_offset}",
                Subject(fact.group, Offset(0)),
            )


class HighWatermarkMonotonic(Invariant):
    """Whoever asks a leader where a partition ends is told no less than anybody was before.

    The high watermarks that come with records tell less: a late answer of another replica, which
    clients take in as well, may carry an older one."""

    def __init__(self) -> None:
        self._told: dict[GroupId, Offset] = {}

    def on_records_read(self, fact: RecordsRead) -> None:
        """A leader's answer counts from when it was asked; for others, from when it is there."""
        told = self._told.get(fact.group, Offset(0))
        if fact.is_leader_read and fact.high_watermark < told:
            raise self.broken(
                f"group {fact.group}: client {fact.consumer} was told that the partition ends at "
                f"{fact.high_watermark}; before that, {told} was told",
                Subject(fact.group, told),
            )
        if not fact.is_leader_read:
            self._told[fact.group] = max(told, fact.high_watermark)


class Judge:
    """See the module. `breaches`: {promise: how it was broken}."""

    def __init__(self, idempotent_producers: Sequence[str]) -> None:
        self.breaches: dict[str, str] = {}
        self.unplaced = NoUnplacedRecordLost()
        self.refused = RefusedRecordNotWritten()
        self.duplicates = NoDuplicateFromIdempotentProducer(idempotent_producers)
        self.invariants: list[Invariant] = [
            NoAcknowledgedRecordLost(),
            self.unplaced,
            self.refused,
            NothingIsLetGo(),
            self.duplicates,
            OrderPerProducer(),
            OffsetsDense(),
            # A killed process leaves what it wrote to the kernel: the power does not fail here.
            NoReadOfWhatDisappeared(power_fails=False),
            NoStaleLeaderRead(),
            HighWatermarkMonotonic(),
            LogMatching(),
            CommittedPrefixEqual(),
            SingleLeaderPerEpoch(),
        ]
        self._offsets: dict[str, GroupOffsetsMonotonic] = {}

    def show(self, fact: Callable[[Invariant], None]) -> None:
        """Show every promise a fact: `fact` calls the one method of the promise that takes it."""
        for invariant in self.invariants:
            self.guard(lambda promise=invariant: fact(promise))  # type: ignore[misc]

    def offsets_of(self, consumer_group: str) -> GroupOffsetsMonotonic:
        """What a consumer group is told of its own offsets."""
        return self._offsets.setdefault(consumer_group, GroupOffsetsMonotonic())

    def guard(self, judge: Callable[[], None]) -> None:
        """Keep the breach that `judge` finds, if it is the first of its promise."""
        try:
            judge()
        except InvariantError as error:
            self.fail(str(error))

    def fail(self, breach: str) -> None:
        """`Promise: how it was broken`."""
        promise, _, how = breach.partition(": ")
        self.breaches.setdefault(promise, how)
