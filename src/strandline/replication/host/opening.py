"""Opens groups on this broker: finds their logs and states, and starts their replicas.

Why:    a start, or a new topic, brings thousands of logs. Each must be durable, names and bytes,
        before its replica votes or acknowledges; a flush for each would take minutes.
How:    add --> log found, not trusted yet --finish--> one flush of the file system --> replicas
        `open_one` flushes its log alone, for a few groups.
Owns:   the logs between `add` and `finish`.
Source: design sections 4 (many dirty logs: one `syncfs`) and 5."""

import logging
from collections.abc import MutableMapping
from errno import ECANCELED

import msgspec

from strandline.base.disk import Disk
from strandline.base.errors import StorageError
from strandline.model.ids import (
    CONTROLLER_GROUP,
    NO_BROKER,
    GroupId,
    Index,
    Offset,
    first_epoch,
)
from strandline.replication.host.bootstrap import GroupBootstrap
from strandline.replication.host.early_appends import EarlyAppends
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.replica_host import ReplicaHost
from strandline.replication.shared import Shared
from strandline.storage.log.log import Log
from strandline.storage.log.space import SpaceAllocator
from strandline.storage.state_journal import GroupState, StateJournal

FLUSHED_EACH_MAX = 8
"""The most logs that are flushed one by one; for more, the file system is flushed once."""
OPENED_AT_ONCE_MAX = 64

_log = logging.getLogger("strandline.replication")


def _on_put(error: OSError | None) -> None:
    """Ignore a failed write: the next start computes the same state."""


class Opening:
    """See the module. `directory`: the parent of the logs; `host`: what replicas report to."""

    def __init__(
        self,
        replicas: MutableMapping[GroupId, Replica],
        shared: Shared,
        host: ReplicaHost[Replica],
        *,
        disk: Disk,
        journal: StateJournal,
        directory: str,
        group_bootstrap: GroupBootstrap,
        early_appends: EarlyAppends,
    ) -> None:
        self._replicas = replicas
        self._shared = shared
        self._host = host
        self._self_id = shared.self_id
        self._disk = disk
        self._journal = journal
        self._directory = directory
        self._group_bootstrap = group_bootstrap
        self._early_appends = early_appends
        # (spec, its log, whether the group has neither state nor log here)
        self._found: list[tuple[GroupSpec, Log, bool]] = []

    @property
    def is_full(self) -> bool:
        """Whether to call `finish` now."""
        return len(self._found) >= OPENED_AT_ONCE_MAX

    @property
    def specs(self) -> list[GroupSpec]:
        """The groups between `add` and `finish`."""
        return [spec for spec, _, _ in self._found]

    def open_one(self, spec: GroupSpec) -> Replica:
        """Open one group at once. Raises OSError, StorageError."""
        _, log, is_new = self._find(spec, defer_flush=False)
        return self._take_part(spec, log, is_new=is_new)

    def add(self, spec: GroupSpec) -> None:
        """Find the log of a group, whose replica starts with `finish`. Raises OSError,
        StorageError."""
        self._found.append(self._find(spec, defer_flush=True))

    def finish(self) -> None:
        """Make all added logs durable and start their replicas. Blocks.

        Raises OSError if they cannot be made durable: then no replica starts."""
        found, self._found = self._found, []
        if not found:
            return
        try:
            self._disk.flush_file_system(self._directory)
        except OSError as error:
            for _, log, _ in found:
                log.give_up(error)
            raise
        for spec, log, is_new in found:
            log.mark_found_durable()
            self._take_part(spec, log, is_new=is_new)

    def abandon(self) -> None:
        """Close the added logs without starting their replicas; they can be added again."""
        found, self._found = self._found, []
        for _, log, _ in found:
            log.give_up(OSError(ECANCELED, "stopped while it was opened"))

    def _find(self, spec: GroupSpec, *, defer_flush: bool) -> tuple[GroupSpec, Log, bool]:
        assert spec.group not in self._replicas
        directory = f"{self._directory}/{spec.directory}"
        state = self._remembered(spec)
        is_there = self._disk.exists(directory)
        is_new = state is None and not is_there
        if state is not None and not state.lost_state and not is_there:
            # A log is durable before any state is put: what was acknowledged with it is gone.
            raise StorageError(directory, 0, expected="the log of this group", found="nothing")
        log = Log.open(
            self._disk,
            directory,
            config=spec.log,
            clock=self._shared.clock,
            # A replica that has lost acknowledged entries anyway need not stop at damage.
            cut_corruption=state is not None and state.lost_state,
            defer_flush=defer_flush,
            space=SpaceAllocator(
                self._shared.reserve,
                name=spec.name,
                may_use_whole_reserve=spec.group == CONTROLLER_GROUP,
            ),
        )
        # An empty log may begin in the first epoch of the group, which no state has to have.
        first = first_epoch(spec.first_grant)
        if log.last_epoch > (first if state is None else max(first, state.epoch)):
            log.give_up(OSError(ECANCELED, "its epoch was lost"))
            # The epoch and the vote are durable before any entry of the epoch is: they were lost.
            raise StorageError(
                self._journal.path,
                0,
                expected=f"the state of group {spec.group} in epoch {log.last_epoch}, "
                "as its log has it",
                found="none" if state is None else f"epoch {state.epoch}: it is damaged",
            )
        return spec, log, is_new

    def _remembered(self, spec: GroupSpec) -> GroupState | None:
        """The state of a group here. A state from before this broker rejoined with another data
        directory counts as lost (decision 0030)."""
        state = self._journal.get(spec.group)
        if state is None or state.rejoined >= spec.rejoined or state.lost_state:
            return state
        _log.warning(
            "%s: this data directory is older than one that this broker has used: its replica "
            "waits until the others have brought it up to date",
            spec.name,
        )
        return msgspec.structs.replace(state, lost_state=True)

    def _is_old(self, spec: GroupSpec, log: Log) -> bool:
        """Whether nothing in this log may be kept: it holds what others have compacted away since
        this data directory was replaced."""
        state = self._journal.get(spec.group)
        is_earlier = state is not None and state.rejoined < spec.rejoined
        return is_earlier and spec.log.has_been_compacted and log.last_index >= log.start_index

    def _leads_first(self, replica: Replica) -> bool:
        """Whether this replica should be the first leader of its group: no voter that comes before
        it by election priority is alive. So the first leader never waits for a time-out."""
        contacts = self._shared.contacts
        living = [
            one
            for one in replica.configuration.voters
            if contacts.is_peer_alive(one) and not contacts.has_hung_up(one)
        ]
        return replica.election_priority.first(living) == self._self_id

    def _take_part(self, spec: GroupSpec, log: Log, *, is_new: bool) -> Replica:
        if spec.start_offset > log.start_offset and log.last_index < log.start_index:
            start = Offset(spec.start_offset)
            log.reset_to(Index(start), start, previous_epoch=first_epoch(spec.first_grant))
        state = self._remembered(spec)
        voters = spec.configuration.voters
        is_asking = spec.asks_voters and state is None and {self._self_id} < set(voters)
        # It may have been given a vote later: only the group's leader can tell.
        is_doubtful = spec.asks_voters and state is None and self._self_id not in voters
        if state is None:
            lost_state = spec.is_lost or is_asking or is_doubtful
            epoch = first_epoch(spec.first_grant)
            state = GroupState(epoch, NO_BROKER, spec.configuration, lost_state)
        is_beginning = state.lost_state and log.last_index < log.start_index
        if is_beginning and state.rejoined < spec.rejoined:
            # Written before the first entry: otherwise the log would count as an old one.
            state = msgspec.structs.replace(state, rejoined=spec.rejoined)
            self._journal.put(spec.group, state, _on_put)
        if state.lost_state and state.epoch < first_epoch(spec.grant):
            state = msgspec.structs.replace(state, epoch=first_epoch(spec.grant), vote=NO_BROKER)
            # Written before any entry of that epoch's leader.
            self._journal.put(spec.group, state, _on_put)
        base = state.configuration if state.configuration is not None else spec.configuration
        gate = spec.snapshots
        lacks_snapshot = gate is not None and log.start_offset > gate.durable_offset
        if lacks_snapshot:
            _log.error(
                "%s: the log begins at offset %d, and no snapshot here goes that far: the replica "
                "takes no part until it has got one from another broker",
                spec.name,
                log.start_offset,
            )
        raft = self._shared.cores.new(spec.group, log, state, base, is_old=self._is_old(spec, log))
        replica = Replica(
            self._shared,
            self._host,
            group=spec.group,
            name=spec.name,
            log=log,
            raft=raft,
            election_priority=spec.election_priority,
            base=base,
            is_fresh=is_new and not state.lost_state,
        )
        replica.appender.voter_count_min = spec.voter_count_min
        replica.lag_ms_max = spec.lag_ms_max
        replica.tier.history = spec.history
        replica.snapshots, replica.lacks_snapshot = gate, lacks_snapshot
        self._replicas[spec.group] = replica
        self._shared.liveness.add(replica)
        if (is_new and self._leads_first(replica)) or replica.was_always_alone:
            self._shared.clock.call_soon(replica.stand_first)
        if is_asking:
            self._group_bootstrap.ask(replica)
        self._early_appends.on_opened(spec.group)
        return replica
