"""Opens the log of the controller's group on this broker, also when it is damaged.

Why:    without it a broker knows nothing of its cluster; but the other voters have all of it.
How:    opened, or damaged --another broker leads the group--> cut before the damage and copied
        again from there (`damaged_logs`). The start of the broker waits meanwhile.
            Epoch and vote stay as the state journal has them. If the journal has none, or no other
        broker votes, the start fails: no other copy can help.
Owns:   whether that log is open; one per broker.
Source: decision 0007; `raft.follower.rejoin`."""

import asyncio
import logging

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.base.errors import OperatorError, StorageError
from strandline.broker.groups.damaged_logs import DamagedLogs
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

_log = logging.getLogger("strandline.broker")


class ControllerLog:
    """See the module. `directory` holds the logs."""

    def __init__(
        self, *, clock: Clock, disk: Disk, replication: Replication, directory: str
    ) -> None:
        self._replication = replication
        self._may_open = asyncio.Event()
        self._damaged = DamagedLogs(
            clock=clock,
            disk=disk,
            replication=replication,
            directory=directory,
            reopen=self._may_open.set,
        )

    def open_nowait(self, spec: GroupSpec) -> Replica | None:
        """Open it; None if it is damaged and another voter has to lead first.

        Raises OperatorError if no other broker has it, OSError, and StorageError if the state
        journal is damaged."""
        try:
            replica = self._replication.open_group(spec)
        except StorageError as error:
            if not self._replication.group_bootstrap.has_history(spec.group):
                raise
            known = self._replication.durable.configuration_of(spec.group)
            voters = (known or spec.configuration).all_voters
            if voters == (self._replication.self_id,):
                raise OperatorError(
                    f"the controller's log is damaged, and no other broker has a vote in it: "
                    f"{error}; restore the data directory from a copy"
                ) from error
            _log.error(
                "%s: its log cannot be opened; it is copied again once another of the brokers %s "
                "leads it: %s",
                spec.name,
                ", ".join(map(str, voters)),
                error,
            )
            self._damaged.add(spec)
            return None
        self._damaged.on_opened(spec.group)
        return replica

    async def wait_opened(self, spec: GroupSpec) -> Replica:
        """Wait for another voter, after `open_nowait` has found damage. Raises as that does."""
        while True:
            await self._may_open.wait()
            self._may_open.clear()
            replica = self.open_nowait(spec)
            if replica is not None:
                return replica
