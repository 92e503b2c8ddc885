"""The index that a write quorum has reached, from the voters' progress.

Why:    a leader asks for it on nearly every acknowledgement, so that must cost no look-up and build
        no set.
How:    for each set of voters that must agree, a list of their Progress (the leader's own included)
        and a position: sorted upwards, W of them have reached the value at the position.
Source: design section 6; `Configuration.quorum_index` computes the same, slowly."""

from collections.abc import Mapping

from strandline.model.ids import BrokerId, Index
from strandline.raft.group.configuration import Configuration
from strandline.raft.leader.progress import Progress


class Quorums:
    """The quorums of one configuration. A voter missing in `progress` has reached nothing."""

    __slots__ = ("_sets",)

    def __init__(self, configuration: Configuration, progress: Mapping[BrokerId, Progress]) -> None:
        self._sets: list[tuple[list[Progress], int]] = []
        for voters in (configuration.voters, configuration.old_voters):
            if voters:
                counted = [progress.get(voter) or Progress(voter, Index(0)) for voter in voters]
                position = len(voters) - configuration.write_quorum(voters)
                self._sets.append((counted, position))
        assert len(self._sets) == 1 + configuration.is_joint, "both sets of a joint one must agree"

    def flushed(self, limit: Index) -> Index:
        """The highest index, `limit` at most, that is durable on a write quorum."""
        for voters, position in self._sets:
            reached = []
            for voter in voters:
                reached.append(voter.match_flushed)
            reached.sort()
            if reached[position] < limit:
                limit = reached[position]
        return limit

    def written(self, limit: Index) -> Index:
        """The highest index, `limit` at most, that a write quorum has written."""
        for voters, position in self._sets:
            reached = [voter.match_written for voter in voters]
            reached.sort()
            if reached[position] < limit:
                limit = reached[position]
        return limit
