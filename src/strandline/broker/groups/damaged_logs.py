"""Logs of this broker that were found damaged when they were to be opened.

Why:    a replica that cannot open its log is one copy less until somebody notices.
How:    closed --another broker leads the partition--> noted durably that what was acknowledged is
        lost --> opened without what lies behind the damage, copied anew from there --> rejoined
            Where it cannot be opened even so, all of it is removed and copied.
Owns:   which groups are closed for damage; one per broker.
Source: decision 0007; `raft.rejoin`."""

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
        """This log could not be opened, for damage."""
        if not self._closed:
            self._clock.call_later(RETRY_MS, self._retry)
        self._closed[spec.group] = spec

    def on_opened(self, group: GroupId) -> None:
        """A log was opened."""
        self._cut.discard(group)

    def drop(self, group: GroupId) -> None:
        """It is here no more."""
        self._closed.pop(group, None)
        self._cut.discard(group)

    def keep(self, groups: Collection[GroupId]) -> None:
        """All other groups are gone."""
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
                self._replication.distrust(spec.group, spec.configuration, opened)
        if self._closed:
            self._clock.call_later(RETRY_MS, self._retry)

    def _on_distrusted(self, spec: GroupSpec, error: OSError | None) -> None:
        """That the replica has lost what it had acknowledged is durable, or another try fails."""
        if error is not None or spec.group not in self._closed:
            return
        if spec.group in self._cut:
            _log.warning("%s: nothing of its log can be used; it is copied anew", spec.name)
            self._disk.remove_tree(f"{self._directory}/{spec.directory}")
        else:
            _log.warning("%s: opened without what lies behind the damage", spec.name)
        self._cut.add(spec.group)
        del self._closed[spec.group]
        self._reopen()
