"""Whether, and when, logs are begun anew (`raft.outdated`)."""

from collections.abc import Callable

import pytest

from strandline.replication.host.removal import ReplicaRemoval
from strandline.replication.replica.replica import Replica


def watch_beginnings(patch: pytest.MonkeyPatch, look: Callable[[Replica], object]) -> None:
    """Have `look` called with each replica whose log is about to be begun anew."""
    begin = ReplicaRemoval.reset_log

    def watched(
        self: ReplicaRemoval, replica: Replica, done: Callable[[], None], *, rejoined: int
    ) -> None:
        look(replica)
        begin(self, replica, done, rejoined=rejoined)

    patch.setattr(ReplicaRemoval, "reset_log", watched)
