"""Compacts the logs of one broker, one after the other, in slices between its other work.

Why:    to read a log and write it anew takes minutes; produce and fetch must not notice. The keys
        of one log at a time must fit into memory.
How:    `Replica.clean` adds its replica. The compactor works on the first log, slice by slice,
        until its pass is over; each pause is four times as long as the slice before it.
            Only entries that are committed and durable here are compacted: up to there, this log
        equals every other one for ever. Offsets, Raft indexes, epochs and markers stay as they are,
        and at least the place of each batch. So logs that were compacted at different times still
        match, entry by entry. They differ only in where empty batches end; a reader that needs a
        part of one cuts it (`storage.log.reads`, `Entries.from_index`).
            A tombstone goes only when every member has it and no member has any record that it
        deletes, however long that takes. A member that was away would never see the tombstone. A
        log that was put together from two others (copied, caught up from a peer, repaired) could
        have the record of one and lack the tombstone of the other. Members report their progress to
        the leader, and the leader reports the minimum.
            With tiered storage, only records that enough buckets have are compacted, and a
        tombstone waits for the buckets, too.
Owns:   the replicas that wait; one per broker.
Source: design section 4; Kafka's log cleaner; decisions 0037 and 0066."""

import logging

from strandline.base.clock import Clock, Timer
from strandline.base.errors import StorageError
from strandline.model.ids import GroupId
from strandline.replication.replica.replica import Replica

PAUSE_MS_MIN = 5
PAUSE_FACTOR = 4

_log = logging.getLogger("strandline.replication")


class Compactor:
    """See the module."""

    def __init__(self, clock: Clock, *, slice_bytes: int) -> None:
        self._clock = clock
        self._slice_bytes = slice_bytes
        self._waiting: dict[GroupId, Replica] = {}
        self._timer: Timer | None = None

    def add(self, replica: Replica) -> None:
        """Compact the replica's log where its topic asks for that and there is enough to gain."""
        if not replica.log.config.compacted:
            return
        replica.tell_compacted()  # Retention may have removed what was not compacted.
        if replica.log.has_uncompacted:
            self._waiting[replica.group] = replica
            self._continue_after(PAUSE_MS_MIN)

    @property
    def is_busy(self) -> bool:
        """Whether a log waits, or is being compacted."""
        return bool(self._waiting)

    def stop(self) -> None:
        """Do no more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _continue_after(self, delay_ms: int) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._clock.call_later(delay_ms, self._step)

    def _step(self) -> None:
        self._timer = None
        group, replica = next(iter(self._waiting.items()))
        started_ms = self._clock.monotonic_ms()
        has_more = False
        try:
            has_more = self._compact(replica)
        finally:
            if not has_more:
                del self._waiting[group]
            spent_ms = self._clock.monotonic_ms() - started_ms
            self._continue_after(max(PAUSE_MS_MIN, PAUSE_FACTOR * spent_ms))

    def _compact(self, replica: Replica) -> bool:
        """Do one slice; whether there is more to do."""
        log = replica.log
        if replica.failed is not None or log.failed:
            return False
        try:
            has_more = log.compact(
                replica.compactable_end,
                outlived=replica.outlived_offset,
                bytes_max=self._slice_bytes,
            )
            replica.tell_compacted()
            return has_more
        except StorageError as error:
            replica.on_unreadable(error)
        except OSError as error:
            if replica.log.failed:
                replica.fail(error)
            else:
                _log.warning("%s: not compacted for now: %s", replica.name, error)
        return False
