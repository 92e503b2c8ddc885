"""A replica as the batcher sees it: where a chunk is appended, and what is waited for.

Why:    the batcher knows requests and acks levels, but no log, core or leader state; this is what
        it asks of them.
How:    a chunk goes to the leader state (`leading`), which gives it to log, tail, core and streams.
        A full disk is logged once, and again when producers are served.
Owns:   whether the last chunk found the disk full.
Source: `appender.Sink`; design section 5."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from strandline.base.errors import ApiError
from strandline.model.ids import Index, Offset
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import BatchHeader
from strandline.replication.leader.appender import Appended, Request, Sink
from strandline.storage.producers.producers import Duplicate

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica

_log = logging.getLogger("strandline.replication")


class ReplicaSink(Sink):
    """See the module; what each method promises is said by `Sink`."""

    def __init__(self, replica: "Replica") -> None:
        self._replica = replica
        self._is_full = False

    def append_chunk(self, requests: Sequence[Request], *, relaxed: bool) -> Appended:
        """See `Sink`. Raises OSError."""
        replica = self._replica
        assert replica.leading is not None
        try:
            appended = replica.leading.append(requests, relaxed=relaxed)
        except OSError as error:
            if replica.log.failed:
                replica.fail(error)
            elif not self._is_full:
                self._is_full = True
                _log.error("%s: producers are refused for now: %s", replica.name, error)
            raise
        if self._is_full:
            self._is_full = False
            _log.info("%s: producers are served again", replica.name)
        return appended

    def can_append(self) -> bool:
        """See `Sink`."""
        replica = self._replica
        return (
            replica.leading is not None and not replica.is_busy and replica.raft.accepts_proposals
        )

    @property
    def has_room(self) -> bool:
        """See `Sink`."""
        leading = self._replica.leading
        return leading is None or leading.has_room

    @property
    def can_serve_reads(self) -> bool:
        """See `Sink`."""
        return self._replica.can_serve_reads

    @property
    def may_be_superseded(self) -> bool:
        """See `Sink`."""
        return self._replica.is_leader and self._replica.lease.is_long_gone

    @property
    def has_floor(self) -> bool:
        """See `Sink`."""
        return self._replica.configuration.floor is not UNSET

    @property
    def caches_writes(self) -> bool:
        """See `Sink`."""
        return self._replica.log.config.write_caching

    @property
    def configuration(self) -> Configuration:
        """See `Sink`."""
        return self._replica.configuration

    def wait_commit(self, index: Index, callback: Callable[[bool], None]) -> None:
        """See `Sink`."""
        if index <= self._replica.raft.commit:
            callback(True)
        else:
            self._replica.waiters.insert(index, callback)

    def wait_written(self, index: Index, callback: Callable[[bool], None]) -> None:
        """See `Sink`."""
        if index <= self._replica.raft.visible:
            callback(True)
        else:
            self._replica.cache_waiters.insert(index, callback)

    def check_producer(self, header: BatchHeader) -> Duplicate | None:
        """See `Sink`.

        A producer that was never heard of begins at sequence 0: what comes first with another one
        overtook its predecessors (an election came between), and would lie before them for ever."""
        log = self._replica.log
        producers = log.producers
        if (
            header.base_sequence > 0
            and log.start_offset == 0
            and not producers.has_forgotten
            and producers.get(header.producer_id) is None
        ):
            raise ApiError(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} is new here, and sent {header.base_sequence} first",
            )
        return producers.check(header)

    def index_for_all(self, offset: Offset) -> Index:
        """See `Sink`."""
        replica = self._replica
        return max(replica.log.index_of(offset), replica.raft.configuration_index)

    def log_start(self) -> Offset:
        """See `Sink`."""
        replica = self._replica
        return replica.log_start_offset if replica.deletions.are_settled else Offset(-1)
