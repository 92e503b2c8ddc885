"""Brings back the logs of this broker that were found damaged when they were opened.

Why:    a replica that cannot open its log is one copy less until an operator notices.
How:    closed --another broker leads the partition--> recorded durably that the replica has lost
        what it acknowledged --> opened up to the damage, the rest copied from the leader -->
        rejoined
            If the log cannot be opened even then, all of it is removed and copied.
Owns:   which groups are closed for damage; one per broker.
Source: decision 0007; `raft.follower.rejoin`."""

import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.model.ids import GroupId
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.replication import Replication

RETRY_MS = 10_000

_log = logging.getLogger("strandline.broker")


class DamagedLogs:
    """See the module. `directory` holds the logs; `reopen` is called when one may be opened."""

    def __init__(
        self,
        *,
        clock: Clock,
        disk: Disk,
        replication: Replication,
        directory: str,
        reopen: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._disk = disk
        self._replication = replication
        self._directory = directory
        self._reopen = reopen
        self._closed: dict[GroupId, GroupSpec] = {}
        # Groups that are, or are about to be, opened without what is damaged.
        self._cut: set[GroupId] = set()

    def __contains__(self, group: GroupId) -> bool:
        return group in self._closed

    def __iter__(self) -> Iterator[GroupId]:
        return iter(self._closed)

    def add(self, spec: GroupSpec) -> None:
        """The log of this group is damaged and was not opened."""
        if not self._closed:
            self._clock.call_later(RETRY_MS, self._retry)
        self._closed[spec.group] = spec

    def on_opened(self, group: GroupId) -> None:
        """A log was opened."""
        self._cut.discard(group)

    def drop(self, group: GroupId) -> None:
        """The group does not belong on this broker any more."""
        self._closed.pop(group, None)
        self._cut.discard(group)

    def keep(self, groups: Collection[GroupId]) -> None:
        """Forget all groups but these."""
        for group in self._closed.keys() - groups:
            del self._closed[group]
        self._cut.intersection_update(groups)

    def _retry(self) -> None:
        own = self._replication.self_id
        for spec in list(self._closed.values()):
            leader = self._replication.leaders.get(spec.group)
            if (
                leader is not None
                and leader.leader != own
                and self._replication.is_peer_alive(leader.leader)
            ):
                opened = partial(self._on_distrusted, spec)
                self._replication.durable.mark_lost(spec.group, spec.configuration, opened)
        if self._closed:
            self._clock.call_later(RETRY_MS, self._retry)

    def _on_distrusted(self, spec: GroupSpec, error: OSError | None) -> None:
        """The loss of what the replica had acknowledged is recorded durably, or that failed."""
        if error is not None or spec.group not in self._closed:
            return
        if spec.group in self._cut:
            _log.warning("%s: its damaged log is unusable: removed, copied again", spec.name)
            self._disk.remove_tree(f"{self._directory}/{spec.directory}")
        else:
            _log.warning("%s: opened up to the damage; the rest is copied again", spec.name)
        self._cut.add(spec.group)
        del self._closed[spec.group]
        self._reopen()
