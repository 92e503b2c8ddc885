"""When the voters of a group led here promise a write quorum that is more than a majority.

Why:    what is acknowledged is on W voters, and any N - W + 1 of them hold it all between them: of
        three with `min.insync.replicas` 3 each one alone. But leaders lower W where voters are
        lost, so the controller may seat fewer than half of them only where it was promised that
        nobody does so behind its back.
How:    once W voters have kept up for a while, where voters may leave at all, the same ones are
        granted anew, with a floor (`raft.configuration`); what is reported then, the controller
        counts on. It is withdrawn by another version, before anything is acknowledged by fewer:
        where it is not wanted any more, or too few are heard. A lease needs as many as the floor
        says, so until then this leader answers no reads.
Owns:   nothing.
Source: design section 6; decision 0041."""

from collections.abc import Collection

from strandline.broker.acting import Acting
from strandline.config.topic import TopicConfig
from strandline.model.ids import BrokerId
from strandline.raft.configuration import Configuration, floor_of
from strandline.replication.host import Replication
from strandline.replication.replica import Replica
from strandline.replication.wire import Ability


class Floors:
    """See the module; one per broker."""

    def __init__(self, replication: Replication, acting: Acting) -> None:
        self._replication = replication
        self._acting = acting

    def wanted(self, replica: Replica, config: TopicConfig, voters: Collection[BrokerId]) -> int:
        """The floor that `voters` should have, who are the present ones where they have any; 0 for
        none, or not now."""
        present = replica.configuration
        least = min(config.min_insync_replicas, len(present.voters))
        promised = Configuration(present.voters, min_insync=least)
        if not config.voters_shrink_enable or set(voters) != set(present.voters):
            return 0
        if present.min_insync < least or least <= len(present.voters) // 2 + 1:
            return 0
        can_do = self._replication.liveness.can_do
        others = (one for one in present.voters if one != replica.self_id)
        if not all(can_do(one, Ability.FLOORS) for one in others):
            return 0
        return least if self._acting.is_calm(replica.group, replica.self_id, promised) else 0

    def has_to_go(self, replica: Replica, config: TopicConfig, *, is_stuck: bool) -> bool:
        """Whether the present floor has to be withdrawn. `is_stuck`: see `Acting.is_stuck`."""
        present = replica.configuration
        least = floor_of(present.floor)
        if not least:
            return False
        if is_stuck or not config.voters_shrink_enable or config.min_insync_replicas < least:
            return True
        own, is_heard = replica.self_id, self._replication.is_peer_alive
        heard = [one for one in present.voters if one == own or is_heard(one)]
        return not Configuration(present.voters, min_insync=least).can_commit(heard)
