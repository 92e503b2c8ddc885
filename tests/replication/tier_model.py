"""A group of replicas as a model, each with the product's own `ReplicaTier` over a model's log.

Why:    the state must be a function of the committed log on every replica: also on one that was
        cut, restarted, or begun anew at the leader's start. Whole brokers take too long for the
        hundreds of thousands of orders that show where two of these meet.
How:    entries are records or markers. Any replica that has all committed entries may be elected;
        it appends an epoch's entry. Followers take the leader's entries, cutting what differs.
        An entry is committed once two of three have it flushed, and the leader one of its epoch.
        A replica's retention runs as the product's does, one entry at a time.
        The oracle is the fold over all committed entries since the first.
Source: decision 0057."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.tiered.state.entries import BUCKET, abandon, entry, intend, intend_replace

from strandline.model.ids import Epoch, Index, Offset
from strandline.replication.replica.tier import ReplicaTier
from strandline.replication.waiters import MarkWaiters
from strandline.storage.config import LogConfig
from strandline.tiered.segments.entry import SegmentEntry, epochs_of
from strandline.tiered.state.commands import (
    Checkpoint,
    Command,
    Forget,
    GoLive,
    IntendReplace,
    MarkClean,
    Replace,
    Retire,
)
from strandline.tiered.state.encoding import decode, encode, is_checkpoint
from strandline.tiered.state.tier import TierState

CONFIG = LogConfig(remote_storage=True, remote_buckets=(BUCKET,), local_retention_ms=0)


@dataclass(frozen=True)
class Entry:
    """One index. `offset`: of the record, or of the next record."""

    epoch: int
    offset: int
    payload: bytes | None = None
    """Of a TIER marker."""
    before: int | None = None
    """Of a deletion."""
    is_record: bool = False


@dataclass
class ModelLog:
    """What `ReplicaTier` asks of a log: entries from `start_index` on."""

    entries: list[Entry] = field(default_factory=list)
    start_index: int = 0
    start_offset: int = 0
    flushed_index: int = -1
    config: LogConfig = CONFIG
    forgotten: int = 0

    @property
    def last_index(self) -> int:
        return self.start_index + len(self.entries) - 1

    @property
    def end_offset(self) -> int:
        if not self.entries:
            return self.start_offset
        return self.entries[-1].offset + self.entries[-1].is_record

    @property
    def tier_markers(self) -> list[tuple[Index, bytes]]:
        return [
            (Index(at), one.payload)
            for at, one in enumerate(self.entries, self.start_index)
            if one.payload is not None and at >= self.forgotten
        ]

    @property
    def deletions(self) -> list[tuple[Index, Offset]]:
        return [
            (Index(at), Offset(one.before))
            for at, one in enumerate(self.entries, self.start_index)
            if one.before is not None
        ]

    @property
    def tier_forgotten(self) -> int:
        return self.forgotten

    @property
    def has_tier_or_deletions(self) -> bool:
        return bool(self.tier_markers or self.deletions)

    def forget_tier_markers(self, before: int) -> None:
        if any(at < before for at, _ in self.tier_markers):
            self.forgotten = max(self.forgotten, before)

    def begin_at(self, index: int, offset: int) -> None:
        """Anew, empty."""
        self.entries, self.forgotten = [], 0
        self.start_index, self.start_offset, self.flushed_index = index, offset, index - 1

    def remove_first(self) -> None:
        """The first entry goes."""
        gone = self.entries.pop(0)
        self.start_index += 1
        self.start_offset = gone.offset + gone.is_record
        self.forgotten = max(self.forgotten, self.start_index)

    def at(self, index: int) -> Entry:
        return self.entries[index - self.start_index]

    def epoch_of(self, index: int) -> Epoch:
        return Epoch(self.at(index).epoch)

    def offset_of(self, index: int) -> Offset:
        return Offset(self.at(index).offset)


class Member:
    """One replica: its log, its tier, and what it knows to be committed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.log = ModelLog()
        self.commit = -1
        self.commit_max = -1
        """The highest commit that any process of this replica has known."""
        self.soon: list[Callable[[], None]] = []
        self.failures: list[Exception] = []
        self.clean_count = 0
        self.tier: Any = None
        self.open()

    def open(self) -> None:
        """A process begins: nothing is known to be committed."""
        self.commit = -1
        self.soon = []
        replica = SimpleNamespace(
            log=self.log,
            name=f"t-0 on {self.number}",
            marks=SimpleNamespace(commit=-1),
            is_leader=True,
            is_busy=False,
            can_append=True,
            high_watermark=0,
        )
        owner = SimpleNamespace(
            leadership=SimpleNamespace(append_tier=self._append),
            can_serve_reads=True,
            fail=self._fail,
            clean=self._clean,
        )
        clock = SimpleNamespace(call_soon=self._call_soon)
        self.tier = ReplicaTier(replica, owner, MarkWaiters(), clock)  # type: ignore[arg-type]

    # Methods, not the lists' own: a copy of the member has its own.

    def _fail(self, error: Exception) -> None:
        self.failures.append(error)

    def _clean(self) -> None:
        self.clean_count += 1

    def _call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def _append(self, payload: bytes) -> None:
        self.log.entries.append(Entry(self.log.entries[-1].epoch, self.log.end_offset, payload))

    def learn(self, commit: int) -> None:
        """Everything up to there is committed, as far as the log has it."""
        commit = min(commit, self.log.last_index)
        if commit > self.commit:
            self.commit = commit
            self.commit_max = max(commit, self.commit_max)
            self.tier.on_commit(Index(commit))


class Group:
    """Three replicas of one partition; see the module."""

    def __init__(self) -> None:
        self.members = [Member(number) for number in range(3)]
        self.leader = self.members[0]
        self.history: list[Entry] = []
        """All committed entries, from the first one on."""
        self.epoch = 0
        self.attempts = 0
        self.elect(self.leader)

    # ---- what happens --------------------------------------------------------------------------

    @property
    def commit(self) -> int:
        return len(self.history) - 1

    @property
    def serves(self) -> bool:
        """Whether the leader has committed an entry of its epoch, and knows of it."""
        history = self.history
        return bool(history) and history[-1].epoch == self.epoch and self.is_caught_up

    @property
    def is_caught_up(self) -> bool:
        return self.leader.commit == self.commit

    def elect(self, member: Member) -> bool:
        """It leads a new epoch, if it has all that is committed."""
        last, log = self.commit, member.log
        if log.last_index < last or (
            log.start_index <= last and log.at(last) != self.history[last]
        ):
            return False
        self.epoch += 1
        self.leader = member
        member.log.entries.append(Entry(self.epoch, member.log.end_offset))
        return True

    def append(self, one: Entry) -> None:
        self.leader.log.entries.append(one)

    def record(self) -> None:
        end = self.leader.log.end_offset
        self.append(Entry(self.epoch, end, is_record=True))

    def delete(self, before: int) -> None:
        self.append(Entry(self.epoch, self.leader.log.end_offset, before=before))

    def propose(self, command: Command) -> None:
        if self.serves:
            self.append(Entry(self.epoch, self.leader.log.end_offset, encode(command)))

    def replicate(self, member: Member) -> None:
        """A follower takes the leader's next entry, or cuts what it has otherwise; one that lacks
        what the leader has no more begins anew."""
        own, theirs = member.log, self.leader.log
        if member is self.leader:
            return
        same = min(own.last_index, theirs.last_index)
        first = max(own.start_index, theirs.start_index)
        if own.last_index + 1 < theirs.start_index:
            own.begin_at(theirs.start_index, theirs.start_offset)
            member.commit = -1
            member.tier.on_reset()
        else:
            while same >= first and own.at(same) != theirs.at(same):
                same -= 1
            if same < own.last_index:
                assert same >= member.commit, "what is committed is never cut"
                del own.entries[same + 1 - own.start_index :]
                own.flushed_index = min(own.flushed_index, same)
        if own.last_index < theirs.last_index:
            own.entries.append(theirs.at(own.last_index + 1))

    def flush(self, member: Member) -> None:
        member.log.flushed_index = member.log.last_index

    def advance(self) -> None:
        """The leader commits what two have, if that has an entry of its epoch."""
        ends = []
        for member in self.members:
            own = member.log
            last = min(own.flushed_index, self.leader.log.last_index)
            low = max(own.start_index, self.leader.log.start_index)
            while last >= low and own.at(last) != self.leader.log.at(last):
                last -= 1
            ends.append(last)
        mark = sorted(ends)[1]
        leader = self.leader.log
        if mark > self.commit and leader.at(mark).epoch == self.epoch:
            self.history += [leader.at(at) for at in range(self.commit + 1, mark + 1)]
        self.leader.learn(self.commit)

    def learn(self, member: Member, *, share: float = 1.0) -> None:
        """A follower hears of the leader's commit, for what it has of the leader's log; or, with
        less than all, of an older one."""
        own = member.log
        mark = min(own.last_index, self.commit)
        mark = min(mark, own.start_index + int((mark - own.start_index) * share))
        if own.start_index <= mark <= self.commit and own.at(mark) == self.history[mark]:
            member.learn(mark)

    def restart(self, member: Member, *, loses: int = 0) -> None:
        """Its process ends; up to `loses` entries that were not flushed are gone."""
        log = member.log
        gone = min(loses, log.last_index - log.flushed_index)
        if member is self.leader or gone:
            self._stand_down(member)
        if gone:
            del log.entries[-gone:]
        member.open()

    def _stand_down(self, member: Member) -> None:
        for other in self.members:
            if other is not member and self.elect(other):
                return
        self.elect(member)

    def checkpoint(self) -> None:
        """The leader wants one, and appends it once all markers are committed."""
        if self.serves:
            self.leader.tier.want_checkpoint(freed_bytes=1 << 30)
            self.run_soon(self.leader)

    def run_soon(self, member: Member) -> None:
        due, member.soon = member.soon, []
        for callback in due:
            if member is self.leader and self.serves:
                callback()

    def maintain(self, member: Member) -> None:
        """What a broker does now and then."""
        if member is not self.leader or self.serves:
            member.tier.maintain()

    def retain(self, member: Member) -> None:
        """Remove the first entry, if the product's retention would."""
        tier, log = member.tier, member.log
        if member.commit <= log.start_index or log.start_index + 1 > tier.removable_index:
            return
        first = log.entries[0]
        if first.offset + first.is_record <= tier.covered().covered_end:
            log.remove_first()

    # ---- the leader's uploads --------------------------------------------------------------------

    def next_command(self, kind: str) -> Command | None:
        """What a leader's look at its state asks for; None for nothing of this kind."""
        state: TierState = self.leader.tier.state
        live, pending = state.live(BUCKET), list(state.pending(BUCKET))
        base = pending[-1].end_offset if pending else state.live_end(BUCKET)
        base = max(base, self.leader.log.start_offset if not live else 0)
        if kind == "intend" and base < self.leader.log.end_offset:
            self.attempts += 1
            return intend(base, base + 1, name=f"{base}-{self.attempts}")
        if kind == "live" and pending:
            one = pending[0]
            return GoLive(BUCKET, entry(one.base_offset, one.end_offset, name=one.name))
        if kind == "abandon" and pending:
            return abandon(pending[-1].name)
        if kind == "retire" and live:
            return Retire(BUCKET, live[0].end_offset, 1)
        known = state.buckets.get(BUCKET)
        shall = state.replacement(BUCKET)
        if kind == "intend replace" and shall is None and len(live) > 1:
            self.attempts += 1
            names = tuple(one.name for one in live[:2])
            base, end = live[0].base_offset, live[1].end_offset
            return intend_replace(*names, base=base, end=end, name=f"{base}-{self.attempts}")
        if kind == "replace" and shall is not None:
            return Replace(BUCKET, shall.names, replacing(shall, live), 1)
        if kind == "give up replacing" and shall is not None:
            return abandon(shall.name)
        if kind == "mark" and live:
            return MarkClean(BUCKET, live[0].end_offset)
        if kind == "forget" and known is not None and known.removals:
            return Forget(BUCKET, tuple(known.removals)[:1])
        return None

    # ---- what must hold --------------------------------------------------------------------------

    def check(self) -> None:
        """Every replica has the state of what it knows to be committed, or says that it has none;
        and every record that is needed is somewhere."""
        for member in self.members:
            assert member.failures == []
            if member.tier.is_known and member.commit >= 0:
                expected = fold(self.history[: member.commit + 1])
                assert member.tier.state.lineage == expected.lineage, member.number
                assert images(member.tier.state) == images(expected), member.number
                if member.commit == member.commit_max:
                    self.check_records(member, expected)
            self.check_kept(member)
            self.check_start(member)

    def check_records(self, member: Member, state: TierState) -> None:
        """Whatever is between the first live record and the log's end can be read."""
        log, live = member.log, state.live(BUCKET)
        start = live[0].base_offset if live else state.live_end(BUCKET)
        for offset in range(start, log.start_offset):
            assert state.find(BUCKET, Offset(offset)), f"offset {offset} is nowhere"
        needed = self.first_needed(state)
        assert log.start_offset <= max(needed, state.live_end(BUCKET)), "removed too early"
        lowest = max(needed, start, state.deleted_before)
        assert member.tier.start_offset <= lowest, "an offset below is needed"

    def check_start(self, member: Member) -> None:
        """No reader is told that the partition begins later than it does: also not by a process
        that does not know yet what an earlier one has known."""
        if member.tier.knows_start:
            known = fold(self.history[: member.commit_max + 1])
            live = known.live(BUCKET)
            start = live[0].base_offset if live else known.live_end(BUCKET)
            lowest = max(self.first_needed(known), start, known.deleted_before)
            assert member.tier.start_offset <= lowest, "a reader would miss records"

    def first_needed(self, state: TierState) -> int:
        """The first offset that no Retire has given up."""
        known = state.buckets.get(BUCKET)
        return 0 if known is None else known.retired_before

    def check_kept(self, member: Member) -> None:
        """A log that begins late has a checkpoint, or its replica knows that it lacks one."""
        log = member.log
        if log.start_index > 0 and member.tier.is_known:
            assert member.tier.checkpoint_index >= log.start_index


def replacing(shall: IntendReplace, live: Sequence[SegmentEntry]) -> SegmentEntry:
    """The object of a replacement: of the epochs of its run, as far as that is live."""
    run = [one for one in live if one.name in shall.names]
    epochs = tuple(epochs_of(run)) or ((Epoch(1), shall.base_offset),)
    return entry(shall.base_offset, shall.end_offset, name=shall.name, epochs=epochs)


def fold(entries: list[Entry]) -> TierState:
    """The state of a log."""
    state = TierState()
    for index, one in enumerate(entries):
        epoch = Epoch(one.epoch)
        if one.before is not None:
            state.delete_records(Index(index), epoch, Offset(one.before))
        elif one.payload is not None and not is_checkpoint(one.payload):
            command = decode(one.payload)
            assert not isinstance(command, Checkpoint)
            state.apply(Index(index), epoch, command, log_end=Offset(one.offset))
    return state


def images(state: TierState) -> object:
    """All of the state but what only counts."""
    return [one.image(name) for name, one in sorted(state.buckets.items())], state.deleted_before
