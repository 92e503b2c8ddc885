"""Counts what happens to replicas and leaves no trace to be counted later.

Why:    leaders that come and go, and logs that fail, are over by the next scrape.
How:    replication calls back for each event; requests cost nothing.
Owns:   the counts, from the start of the process."""

from collections import Counter

from strandline.base.errors import StorageError
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

CHANGES = ("begun", "ended")
CAUSES = ("io", "damage")


class Happenings:
    """See the module."""

    def __init__(self, replication: Replication) -> None:
        self.leader_changes = Counter(dict.fromkeys(CHANGES, 0))
        self.failures = Counter(dict.fromkeys(CAUSES, 0))
        replication.on_leadership.append(self._on_leadership)
        replication.on_failed.append(self._on_failed)

    def _on_leadership(self, _: Replica, *, is_leading: bool) -> None:
        self.leader_changes["begun" if is_leading else "ended"] += 1

    def _on_failed(self, replica: Replica) -> None:
        self.failures["damage" if isinstance(replica.failed, StorageError) else "io"] += 1
