"""Bugs planted on purpose: each breaks one promise of the drivers, the log or the core.

A simulator that finds nothing may be looking nowhere: what it must find is kept here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import pytest

from strandline.base.disk import File
from strandline.broker.coordinators.coordinator_shard import CoordinatorShard
from strandline.broker.fetch import fetching
from strandline.broker.handlers import list_offsets
from strandline.coordinator.effects import Persist
from strandline.coordinator.members import Member as GroupMember
from strandline.coordinator.replay import OffsetsState
from strandline.coordinator.requests import Persisted
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.protocol.errors import Error
from strandline.raft.election.election import Elections
from strandline.raft.events import PersistState
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader.sending import Sending
from strandline.raft.messages import AppendRequest, Run, VoteResponse
from strandline.records.batch import BatchHeader
from strandline.replication.host.replication import Replication
from strandline.replication.leader.appender import Appender
from strandline.replication.leader.requests import Appended, AppendResult, Request
from strandline.replication.liveness.bound_votes import BoundVotes
from strandline.replication.liveness.sessions import NEVER_MS, FollowSession
from strandline.replication.relay.relays import Relays
from strandline.replication.replica.durable_state import DurableState
from strandline.replication.replica.flushes import Flushes
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.disk.disk import SimDisk
from strandline.simulation.scenarios.scenario import PlannedFault, Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.storage import state_journal
from strandline.storage.config import LogConfig
from strandline.storage.log import retention
from strandline.storage.log.checksum_verification import Unverified
from strandline.storage.log.log import Log
from strandline.storage.log.segment import Segment
from strandline.storage.producers import producers
from strandline.storage.producers.producers import Duplicate, ProducerEntry
from strandline.storage.recovery.renewal import Renewal

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_the_quorum(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered as acks=1: once the leader has written."""

    def wait(
        self: Appender, done: Callable[[AppendResult], None], index: Index, result: AppendResult
    ) -> None:
        done(result)

    patch.setattr(Appender, "_wait", wait)


def mix_up_the_answers(patch: pytest.MonkeyPatch) -> None:
    """With acks=1 each of some producers is told where the record of another one is."""
    honest = Appender._write

    def write(self: Appender, chunk: list[Request], *, relaxed: bool) -> Appended:
        appended = honest(self, chunk, relaxed=relaxed)
        offsets = appended.base_offsets
        return Appended(appended.last_index, offsets[::-1]) if relaxed else appended

    patch.setattr(Appender, "_write", write)


def commit_what_is_only_written(patch: pytest.MonkeyPatch) -> None:
    """The quorum counts writes where it must count flushes."""
    patch.setattr(Quorums, "flushed", Quorums.written)


def report_a_flush_that_was_not_made(patch: pytest.MonkeyPatch) -> None:
    """No fsync before the acknowledgement."""

    def flush_soon(self: SimDisk, file: File, done: Callable[[OSError | None], None]) -> None:
        self._process.after(0, lambda: done(None))

    patch.setattr(SimDisk, "flush_soon", flush_soon)


def answer_before_the_state_is_durable(patch: pytest.MonkeyPatch) -> None:
    """A vote is given, and forgotten in a crash."""
    honest = DurableState.persist

    def persist(
        self: DurableState,
        replica: Replica,
        effect: PersistState,
        done: Callable[[OSError | None], None],
    ) -> None:
        honest(self, replica, effect, lambda error: None)
        replica.shared.clock.call_soon(lambda: done(None))

    patch.setattr(DurableState, "persist", persist)


def follow_leaders_of_the_past(patch: pytest.MonkeyPatch) -> None:
    """The epoch of an append is not checked."""
    honest = Replica.on_append

    def on_append(self: Replica, sender: int, message: object, entries: object) -> None:
        if isinstance(message, AppendRequest) and not self.is_leader:
            message = _in_epoch(message, max(message.epoch, self.epoch))
        honest(self, sender, message, entries)  # type: ignore[arg-type]

    patch.setattr(Replica, "on_append", on_append)


def truncate_what_matches(patch: pytest.MonkeyPatch) -> None:
    """An append that was overtaken cuts the log, though its entries are there."""

    def agreeing_end(self: LogShape, first: Index, run: Run) -> Index:
        return Index(first - 1)

    patch.setattr(LogShape, "agreeing_end", agreeing_end)


def believe_the_flush_of_another_log(patch: pytest.MonkeyPatch) -> None:
    """A flush that was asked for before a truncation counts for what was written after it."""
    honest = Flushes._on_flushed

    def on_flushed(self: Flushes, result: Index | OSError) -> None:
        if not isinstance(result, OSError):
            result = self._replica.log.last_index
        self._generation = self._replica.raft.log.generation
        honest(self, result)

    patch.setattr(Flushes, "_on_flushed", on_flushed)


def show_what_is_only_appended(patch: pytest.MonkeyPatch) -> None:
    """The high watermark is the end of the log."""
    honest = Replica.update_marks

    def update_marks(self: Replica, commit: Index, visible: Index) -> None:
        honest(self, commit, self.log.last_index)

    patch.setattr(Replica, "update_marks", update_marks)


def read_without_a_lease(patch: pytest.MonkeyPatch) -> None:
    """A deposed leader answers from the past."""
    patch.setattr(Replica, "can_serve_reads", property(lambda self: self.is_serving))


def vote_against_a_living_leader(patch: pytest.MonkeyPatch) -> None:
    """Voters do not keep the promise on which leases rest. Random faults do not bring the moment
    about in which that shows: see `test_leases`."""
    patch.setattr(BoundVotes, "is_leader_alive", lambda self, *_: False)


def forget_whom_one_has_left(patch: pytest.MonkeyPatch) -> None:
    """Who is moved on by somebody else's word has promised nothing to its former leader."""
    patch.setattr(FollowSession, "left_ms", lambda self, group: NEVER_MS)


def vote_for_oneself_whoever_leads(patch: pytest.MonkeyPatch) -> None:
    """A candidate that hears the leader again stands all the same."""
    honest = Elections.on_vote_response

    def on_vote_response(
        self: Elections, sender: BrokerId, message: VoteResponse, *, leader_alive: bool
    ) -> None:
        honest(self, sender, message, leader_alive=False)

    patch.setattr(Elections, "on_vote_response", on_vote_response)


def forget_what_producers_wrote(patch: pytest.MonkeyPatch) -> None:
    """Sequences of idempotent producers are not checked."""

    def check_producer(self: Appender, header: BatchHeader) -> None:
        return None

    patch.setattr(Appender, "_check_producer", check_producer)


def forget_what_was_answered(patch: pytest.MonkeyPatch) -> None:
    """A batch is known again until it has been acknowledged: then nobody would ask again."""
    honest_replicate, honest_check = Replica.replicate, Appender._check_producer
    answered: WeakKeyDictionary[Replica, set[tuple[int, int, int]]] = WeakKeyDictionary()

    def key_of(header: BatchHeader) -> tuple[int, int, int]:
        return header.producer_id, header.producer_epoch, header.base_sequence

    def replicate(
        self: Replica,
        batches: list[bytearray],
        headers: list[BatchHeader],
        *,
        acks: int,
        done: Callable[[AppendResult], None],
    ) -> None:
        def on_done(result: AppendResult) -> None:
            if result.error_code == Error.NONE:
                answered.setdefault(self, set()).update(map(key_of, headers))
            done(result)

        honest_replicate(self, batches, headers, acks=acks, done=on_done)

    def check_producer(self: Appender, header: BatchHeader) -> Duplicate | None:
        found = honest_check(self, header)
        return None if key_of(header) in answered.get(self._replica, ()) else found

    patch.setattr(Replica, "replicate", replicate)
    patch.setattr(Appender, "_check_producer", check_producer)


def tell_the_latest_offset_to_who_asks_again(patch: pytest.MonkeyPatch) -> None:
    """A batch that is there already is said to be where the producer's latest one is."""
    honest = Appender._check_producer

    def check_producer(self: Appender, header: BatchHeader) -> Duplicate | None:
        found = honest(self, header)
        entry = self._replica.log.producers.get(header.producer_id)
        if found is None or entry is None:
            return found
        return Duplicate(entry.window[-1].base_offset, entry.window[-1].last_offset)

    patch.setattr(Appender, "_check_producer", check_producer)


def know_the_latest_batch_alone(patch: pytest.MonkeyPatch) -> None:
    """Of what a producer had in flight only the last batch is known again."""
    honest = producers._judge

    def judge(entry: ProducerEntry | None, header: BatchHeader) -> Duplicate | None:
        return honest(entry and entry._replace(window=entry.window[-1:]), header)

    patch.setattr(producers, "_judge", judge)


def take_files_for_durable_after_a_kill(patch: pytest.MonkeyPatch) -> None:
    """Opening a log does not flush what its predecessor wrote."""
    honest = Log.open.__func__  # type: ignore[attr-defined]

    def open_log(cls: type[Log], disk: SimDisk, directory: str, **options: object) -> Log:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SimDisk, "flush_now", lambda self, file: None)
            return honest(cls, disk, directory, **options)  # type: ignore[no-any-return]

    patch.setattr(Log, "open", classmethod(open_log))


def forget_the_names_of_files(patch: pytest.MonkeyPatch) -> None:
    """Directories are not flushed."""
    patch.setattr(SimDisk, "flush_directory", lambda self, path: None)


def let_a_lost_disk_vote(patch: pytest.MonkeyPatch) -> None:
    """A replica that lost its disk takes part as if its log had always been empty."""
    honest = Replication.open_group

    def open_group(self: Replication, spec: object) -> Replica:
        import dataclasses

        return honest(self, dataclasses.replace(spec, is_lost=False))  # type: ignore[type-var]

    patch.setattr(Replication, "open_group", open_group)


def _in_epoch(message: AppendRequest, epoch: Epoch) -> AppendRequest:
    import msgspec

    return msgspec.structs.replace(message, epoch=epoch)


def count_observers(patch: pytest.MonkeyPatch) -> None:
    """An observer's acknowledgement counts like a voter's."""
    honest = Quorums.__init__

    def init(self: Quorums, configuration: Configuration, progress: object) -> None:
        honest(self, configuration, progress)  # type: ignore[arg-type]
        observers = [progress[one] for one in configuration.observers if one in progress]  # type: ignore[operator,index]
        self._sets = [
            (counted + observers, position + len(observers)) for counted, position in self._sets
        ]

    patch.setattr(Quorums, "__init__", init)


def go_on_after_a_failed_flush(patch: pytest.MonkeyPatch) -> None:
    """What could not be flushed counts as flushed."""
    honest = Flushes._on_flushed

    def on_flushed(self: Flushes, result: Index | OSError) -> None:
        if isinstance(result, OSError):
            self._replica.log._flushing.error = None
            result = self._replica.log.last_index
        honest(self, result)

    patch.setattr(Flushes, "_on_flushed", on_flushed)


def commit_offsets_at_once(patch: pytest.MonkeyPatch) -> None:
    """A group's offsets are acknowledged before a quorum has them."""

    def persist(self: CoordinatorShard, effect: Persist) -> None:
        honest(self, Persist(effect.group, -1, effect.records))
        self.feed(Persisted(effect.group, effect.ticket, Error.NONE))

    honest = CoordinatorShard._persist
    on_persisted = CoordinatorShard._on_persisted

    def quiet(
        self: CoordinatorShard,
        effect: Persist,
        results: list[AppendResult],
        count: int,
        result: AppendResult,
    ) -> None:
        if effect.ticket != -1:
            on_persisted(self, effect, results, count, result)

    patch.setattr(CoordinatorShard, "_persist", persist)
    patch.setattr(CoordinatorShard, "_on_persisted", quiet)


def coordinate_before_the_log_is_read(patch: pytest.MonkeyPatch) -> None:
    """A coordinator that has just been elected answers with what it knows: nothing."""

    async def load(self: CoordinatorShard) -> None:
        self._perform(self.coordinator.load(OffsetsState(), now_ms=self._clock.wall_ms()))
        self.is_loaded = True

    patch.setattr(CoordinatorShard, "_load", load)


def take_commits_that_were_overtaken(patch: pytest.MonkeyPatch) -> None:
    """A commit that was held up sets the group back, after what its member has committed since."""
    patch.setattr(GroupMember, "is_overtaken", lambda *asked: False)


def read_without_looking_at_the_lease(patch: pytest.MonkeyPatch) -> None:
    """A Fetch is answered by whoever believes to lead."""

    def check(
        services: object, replica: Replica, client_epoch: int, *, serves_as_follower: bool
    ) -> Error:
        return Error.NONE if replica.is_leader else Error.NOT_LEADER_OR_FOLLOWER

    patch.setattr(fetching, "check_own_replica", check)


class _Leaseless:
    """A replica that believes in its lease, whatever the time."""

    can_serve_reads = True

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def __getattr__(self, name: str) -> object:
        return getattr(self._replica, name)


def tell_the_end_without_looking_at_the_lease(patch: pytest.MonkeyPatch) -> None:
    """A ListOffsets is answered by whoever believes to lead."""
    honest = list_offsets.find_leader

    def find_leader(*asked: object) -> tuple[_Leaseless | None, Error]:
        replica, error = honest(*asked)  # type: ignore[arg-type]
        return (None if replica is None else _Leaseless(replica)), error

    patch.setattr(list_offsets, "find_leader", find_leader)


def forget_what_was_sent(patch: pytest.MonkeyPatch) -> None:
    """`last_sent` is ignored: a follower is sent the same entries until it acknowledges them."""
    honest = Sending.note_sent

    def note_sent(self: Sending, peer: BrokerId, last_index: Index) -> None:
        progress = self._state.progress.get(peer)
        next_index = None if progress is None else progress.next_index
        honest(self, peer, last_index)
        if progress is not None and next_index is not None:
            progress.next_index = next_index

    patch.setattr(Sending, "note_sent", note_sent)


def trust_the_cache_with_logs(patch: pytest.MonkeyPatch) -> None:
    """What of a log a failed flush left in the page cache is believed, and not written again."""
    patch.setattr(Renewal, "finish", lambda self: None)


def trust_the_cache_with_votes(patch: pytest.MonkeyPatch) -> None:
    """The same for the state journal."""
    patch.setattr(state_journal, "durable_end_of", lambda data, end: end)


def believe_every_byte(patch: pytest.MonkeyPatch) -> None:
    """Checksums are not looked at when a log of an earlier process is read."""
    patch.setattr(Unverified, "verify", lambda *_, **__: False)


def send_to_each_by_itself(patch: pytest.MonkeyPatch) -> None:
    """Nobody is found to relay to others: what is new crosses for each replica of a region."""

    def can_relay(self: Relays, one: BrokerId, next_index: Index) -> bool:
        return False

    patch.setattr(Relays, "_can_relay", can_relay)


def let_go_of_what_is_to_be_kept(patch: pytest.MonkeyPatch) -> None:
    """Retention takes whatever is closed and committed."""

    def expired(
        segments: Sequence[Segment], config: LogConfig, *, limit_offset: Offset, **_: object
    ) -> int:
        return sum(segment.end_offset <= limit_offset for segment in segments[:-1])

    patch.setattr(retention, "expired_segments", expired)


def keep_half(patch: pytest.MonkeyPatch) -> None:
    """Retention keeps half of `retention.bytes`."""
    honest = retention.expired_segments

    def expired(segments: Sequence[Segment], config: LogConfig, **limits: object) -> int:
        half = replace(config, retention_bytes=max(-1, config.retention_bytes // 2))
        return honest(segments, half, **limits)  # type: ignore[arg-type]

    patch.setattr(retention, "expired_segments", expired)


MISFITS = tuple(one.__name__ for one in (TypeError, AttributeError, NameError))
"""What violations tell of where a mistake does not fit the program any more."""


@dataclass(frozen=True)
class Mutant:
    """A mistake, and where it shows: these `faults`, in scenarios of which `fits` holds, with
    `changes`. `seed` is a short cut, and may go stale."""

    plant: Plant
    faults: tuple[str, ...]
    seed: int
    has_brokers: bool | None = None
    has_group: bool = False
    has_observers: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)

    def scenario(self, seed: int) -> Scenario | None:
        """The scenario of a seed; None where the mistake cannot show."""
        drawn = Scenario.draw(seed)
        if self.has_brokers is not None and drawn.has_brokers != self.has_brokers:
            return None
        if self.has_group and not drawn.group_consumer_count:
            return None
        if self.has_observers and not any(plan.observers for plan in drawn.groups):
            return None
        weights = dict.fromkeys(self.faults, 1)
        return replace(drawn, fault_weights=weights, **self.changes)  # type: ignore[arg-type]

    def is_found_by(self, seed: int) -> bool:
        """Whether the run of a seed breaks a promise."""
        scenario = self.scenario(seed)
        return scenario is not None and breaks_a_promise(scenario)


def breaks_a_promise(scenario: Scenario) -> bool:
    """Whether its run does; not where the mistake itself only does not fit the program any more."""
    return is_of_the_product(run_scenario(scenario).violation)


def is_of_the_product(violation: str | None) -> bool:
    """Whether a promise was broken, or something refused, and not only called with what it does not
    know."""
    return violation is not None and not any(name in violation for name in MISFITS)


UNDISTURBED = {
    "loss_ratio": 0.0,
    "flush_us": (100, 2_000),
    "settings": ReplicationSettings(),
    "active_ms": 3_000,
}
SLOW_FLUSHES = {"flush_us": (3_000, 40_000), "asks_voters": False}
POWER_FAILS_AFTER_KILLS = {
    "flush_us": (20_000, 40_000),
    "asks_voters": False,
    "active_ms": 9_000,
    "faults": tuple(
        fault
        for at_ms in (1_000, 4_000, 7_000)
        for fault in (
            PlannedFault(at_ms, "kill-all", 200, 1),
            PlannedFault(at_ms + 1_500, "total-power-failure", 200, 1),
        )
    ),
}
SHORT = {"active_ms": 7_000}
LONG = {"active_ms": 30_000, "fault_interval_ms": 1_500}
OFTEN = {"active_ms": 7_000, "fault_interval_ms": 500}
SELDOM = {"active_ms": 10_000, "fault_interval_ms": 1_000, "asks_voters": False}
CACHED = ("failed-flush", "total-power-failure")
POWER = ("power-failure", "total-power-failure", "leader-power-failure")

MUTANTS: Sequence[Mutant] = (
    Mutant(acknowledge_before_the_quorum, ("kill-leader", "isolation"), 1),
    Mutant(mix_up_the_answers, ("kill-leader",), 6),
    Mutant(send_to_each_by_itself, (), 1, False, changes=UNDISTURBED),
    Mutant(commit_what_is_only_written, POWER, 66, False, changes=SLOW_FLUSHES),
    Mutant(report_a_flush_that_was_not_made, POWER, 2),
    Mutant(answer_before_the_state_is_durable, POWER, 79, False, changes=SLOW_FLUSHES),
    Mutant(follow_leaders_of_the_past, ("pause", "isolation", "kill-leader"), 10),
    Mutant(
        truncate_what_matches,
        ("late-delivery", "leader-power-failure", "lossy-link", "reset"),
        11,
    ),
    Mutant(
        believe_the_flush_of_another_log,
        ("split", "isolation", "slow-disk", "total-power-failure"),
        147,
        False,
        changes=SLOW_FLUSHES,
    ),
    Mutant(show_what_is_only_appended, ("isolation", "kill-leader"), 1),
    Mutant(read_without_a_lease, ("isolation", "pause", "mute"), 112, False),
    Mutant(forget_what_producers_wrote, ("kill-leader", "reset", "slow-link"), 3),
    Mutant(forget_what_was_answered, ("lost-answers",), 3),
    Mutant(tell_the_latest_offset_to_who_asks_again, ("client-reset",), 3),
    Mutant(know_the_latest_batch_alone, ("lost-answers", "client-reset"), 3),
    Mutant(
        take_files_for_durable_after_a_kill,
        (),
        5,
        False,
        changes=POWER_FAILS_AFTER_KILLS,
    ),
    Mutant(forget_the_names_of_files, POWER, 10),
    Mutant(
        let_a_lost_disk_vote,
        ("lost-disk", "mute", "kill-leader", "isolation"),
        4,
        False,
        changes={"asks_voters": False},
    ),
    Mutant(count_observers, ("kill-leader", "mute", "isolation"), 1042, False, has_observers=True),
    Mutant(go_on_after_a_failed_flush, ("failed-flush", "total-power-failure"), 136, False),
    Mutant(
        commit_offsets_at_once,
        ("isolation", "kill-leader"),
        63,
        True,
        has_group=True,
        changes=OFTEN,
    ),
    Mutant(
        coordinate_before_the_log_is_read,
        ("kill-leader",),
        11,
        True,
        has_group=True,
        changes=SHORT,
    ),
    Mutant(
        take_commits_that_were_overtaken,
        ("stalled-requests",),
        48,
        True,
        has_group=True,
        changes=LONG,
    ),
    Mutant(let_go_of_what_is_to_be_kept, (), 1),
    Mutant(keep_half, (), 6),
    Mutant(forget_what_was_sent, (), 1),
    Mutant(trust_the_cache_with_logs, CACHED, 89, False, changes=SELDOM),
    Mutant(trust_the_cache_with_votes, CACHED, 6, False, changes=SELDOM),
    Mutant(believe_every_byte, ("bit-rot", "kill-leader"), 1),
    Mutant(read_without_looking_at_the_lease, ("isolation", "pause", "mute"), 11, True),
    Mutant(tell_the_end_without_looking_at_the_lease, ("isolation", "pause", "mute"), 31, True),
)
