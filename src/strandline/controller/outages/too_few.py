"""Which partitions refuse acks=all because too few of their voters are heard. Pure.

Why:    If voters may not leave, the log does not change when one is lost: the leader refuses by
        itself, and the operator must learn of it as of any other failure.
How:    Acknowledged writes need more than a majority, and fewer voters than that are heard. Without
        a majority there is no leader: `leaderless` reports that. If voters may leave, leaders
        report the refusal themselves.
Owns:   the last result, for as long as nothing has changed: there may be thousands.
Source: design section 8; `broker.handlers.produce`, which refuses."""

from collections.abc import Callable, Mapping

from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.raft.group.configuration import Configuration


class TooFew:
    """See the module."""

    def __init__(self) -> None:
        # (version of the state, silent brokers)
        self._found_for: tuple[int, frozenset[BrokerId]] = -1, frozenset()
        self._found: frozenset[GroupId] = frozenset()

    def found(
        self,
        groups: Mapping[GroupId, Partition],
        *,
        version: int,
        silent: frozenset[BrokerId],
        min_insync_of: Callable[[Partition], int],
    ) -> frozenset[GroupId]:
        """Those partitions. `groups`: those of the state of this `version`; `min_insync_of`: the
        topic's `min.insync.replicas`."""
        if (version, silent) != self._found_for:
            self._found_for = version, silent
            self._found = frozenset(
                group
                for group, one in groups.items()
                if not silent.isdisjoint(one.voters) and _refuses(one, silent, min_insync_of(one))
            )
        return self._found


def _refuses(partition: Partition, silent: frozenset[BrokerId], min_insync: int) -> bool:
    heard = [one for one in partition.voters if one not in silent]
    configuration = Configuration(partition.voters, min_insync=min_insync)
    return configuration.wins_election(heard) and not configuration.can_commit(heard)
