"""Bugs planted on purpose: each breaks one promise of the drivers, the log or the core.

A simulator that finds nothing may be looking nowhere: what it must find is kept here."""

from collections.abc import Callable, Sequence

import pytest

from strandline.base.disk import File
from strandline.model.ids import Epoch, Index
from strandline.raft.events import PersistState
from strandline.raft.log_shape import LogShape
from strandline.raft.messages import AppendRequest, Run
from strandline.raft.quorums import Quorums
from strandline.records.batch import BatchHeader
from strandline.replication.appender import Appender, AppendResult, Request
from strandline.replication.host import Replication
from strandline.replication.liveness import Liveness
from strandline.replication.replica import Replica
from strandline.simulation.disk import SimDisk
from strandline.storage.log import Log

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_the_quorum(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered as acks=1: once the leader has written."""

    def wait(self: Appender, request: Request, index: Index, result: AppendResult) -> None:
        request.done(result)

    patch.setattr(Appender, "_wait", wait)


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
    honest = Replication.persist

    def persist(
        self: Replication,
        replica: Replica,
        effect: PersistState,
        done: Callable[[OSError | None], None],
    ) -> None:
        honest(self, replica, effect, lambda error: None)
        self.clock.call_soon(lambda: done(None))

    patch.setattr(Replication, "persist", persist)


def follow_leaders_of_the_past(patch: pytest.MonkeyPatch) -> None:
    """The epoch of an append is not checked."""
    honest = Replica.on_message

    def on_message(self: Replica, sender: int, message: object, entries: object = None) -> None:
        if isinstance(message, AppendRequest) and not self.is_leader:
            message = _in_epoch(message, max(message.epoch, self.epoch))
        honest(self, sender, message, entries)  # type: ignore[arg-type]

    patch.setattr(Replica, "on_message", on_message)


def truncate_what_matches(patch: pytest.MonkeyPatch) -> None:
    """An append that was overtaken cuts the log, though its entries are there."""

    def agreeing_end(self: LogShape, first: Index, run: Run) -> Index:
        return Index(first - 1)

    patch.setattr(LogShape, "agreeing_end", agreeing_end)


def believe_the_flush_of_another_log(patch: pytest.MonkeyPatch) -> None:
    """A flush that was asked for before a truncation counts for what was written after it."""
    honest = Replica._on_flushed

    def on_flushed(self: Replica, generation: int, result: Index | OSError) -> None:
        if not isinstance(result, OSError):
            result = self.log.last_index
        honest(self, self.raft.log.generation, result)

    patch.setattr(Replica, "_on_flushed", on_flushed)


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
    """Voters do not keep the promise on which leases rest."""
    patch.setattr(Liveness, "is_leader_alive", lambda self, replica: False)


def forget_what_producers_wrote(patch: pytest.MonkeyPatch) -> None:
    """Sequences of idempotent producers are not checked."""

    def check_producer(self: Replica, header: BatchHeader) -> None:
        return None

    patch.setattr(Replica, "check_producer", check_producer)


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


MUTANTS: Sequence[Plant] = (
    acknowledge_before_the_quorum,
    commit_what_is_only_written,
    report_a_flush_that_was_not_made,
    answer_before_the_state_is_durable,
    follow_leaders_of_the_past,
    truncate_what_matches,
    believe_the_flush_of_another_log,
    show_what_is_only_appended,
    read_without_a_lease,
    vote_against_a_living_leader,
    forget_what_producers_wrote,
    take_files_for_durable_after_a_kill,
    forget_the_names_of_files,
    let_a_lost_disk_vote,
)
