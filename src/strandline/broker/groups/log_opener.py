"""Opens the logs of groups on this broker, and remembers the ones that cannot be opened.

Why:    a log may be damaged, unreadable, or without space to begin in: the other replicas serve it
        meanwhile, and the other logs of this broker are opened all the same.
How:    opened
        damaged          --another replica leads--> cut and copied again (`damaged_logs`)
        no space         --each `FULL_RETRY_MS`--> tried again
        any other error  --> closed until the broker starts again
Owns:   which groups could not be opened, and why.
Source: design section 4; decision 0007."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from strandline.base.clock import Clock
from strandline.base.disk import Disk, is_full
from strandline.base.errors import StorageError
from strandline.broker.groups.damaged_logs import DamagedLogs
from strandline.model.ids import GroupId
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.opening import FLUSHED_EACH_MAX
from strandline.replication.host.replication import Replication

FULL_RETRY_MS = 10_000

_log = logging.getLogger("strandline.broker")


class LogOpener:
    """See the module. `directory` holds the logs; `retry` is called when closed groups may be
    opened again."""

    def __init__(
        self,
        *,
        clock: Clock,
        disk: Disk,
        replication: Replication,
        directory: str,
        retry: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._retry = retry
        self._damaged = DamagedLogs(
            clock=clock, disk=disk, replication=replication, directory=directory, reopen=retry
        )
        # Groups whose log the disk could not open: they stay closed until the broker restarts.
        self._broken: set[GroupId] = set()
        # Groups whose log found no space to begin in: they are tried again.
        self._waiting: set[GroupId] = set()

    @property
    def closed(self) -> list[GroupId]:
        """The groups that could not be opened."""
        return [*self._broken, *self._damaged, *self._waiting]

    def keep(self, here: Collection[GroupId]) -> None:
        """Forget all groups but these."""
        self._broken.intersection_update(here)
        self._damaged.keep(here)
        self._waiting.intersection_update(here)

    def drop(self, group: GroupId) -> None:
        """Forget a group: it belongs here no more."""
        self._broken.discard(group)
        self._waiting.discard(group)
        self._damaged.drop(group)

    def open_all(
        self, specs: Collection[GroupSpec], *, has_changed: Callable[[GroupId], bool]
    ) -> Iterator[None]:
        """Open these groups in steps, a few at a time; many are made durable together. A group that
        has changed meanwhile is left out: it has its turn later, by what is known then."""
        opening = self._replication.opening
        are_many = len(specs) > FLUSHED_EACH_MAX
        for spec in specs:
            if has_changed(spec.group) or not self.open(spec, is_one_of_many=are_many):
                continue
            if opening.is_full:
                self.finish()
            yield
        self.finish()

    def open(self, spec: GroupSpec, *, is_one_of_many: bool) -> bool:
        """Open one group, unless it stays closed; whether that was tried. One of many is open only
        after `finish`."""
        if self._stays_closed(spec.group):
            return False
        opening = self._replication.opening
        open_it = opening.add if is_one_of_many else opening.open_one
        self._attempt(partial(open_it, spec), [spec])
        return True

    def finish(self) -> None:
        """Make the logs that were found durable; their groups are open then."""
        opening = self._replication.opening
        self._attempt(opening.finish, opening.specs)

    def _stays_closed(self, group: GroupId) -> bool:
        closed = (self._broken, self._damaged, self._replication.removal)
        return any(group in groups for groups in closed)

    def _attempt(self, attempt: Callable[[], object], specs: Iterable[GroupSpec]) -> None:
        try:
            attempt()
        except (OSError, StorageError) as error:
            for spec in specs:
                self._on_not_opened(spec, error)
            return
        for spec in specs:
            self._waiting.discard(spec.group)
            self._damaged.on_opened(spec.group)

    def _on_not_opened(self, spec: GroupSpec, error: Exception) -> None:
        if is_full(error):
            self._wait_for_space(spec, error)
            return
        if isinstance(error, StorageError):
            self._damaged.add(spec)
        else:
            self._broken.add(spec.group)
        _log.error("%s: its log cannot be opened, other replicas serve it: %s", spec.name, error)

    def _wait_for_space(self, spec: GroupSpec, error: Exception) -> None:
        if not self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)
        if spec.group not in self._waiting:
            self._waiting.add(spec.group)
            _log.warning(
                "%s: its log waits for space, other replicas serve it: %s", spec.name, error
            )

    def _try_again(self) -> None:
        self._retry()
        if self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)
