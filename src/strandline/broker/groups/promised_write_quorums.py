"""When the voters of a group led here promise a write quorum that is more than a majority.

Why:    what is acknowledged is on W voters, and any N - W + 1 of them hold it all between them: of
        three with `min.insync.replicas` 3 each one alone. But leaders lower W where voters are
        lost, so the controller may seat fewer than half of them only where it was promised that
        nobody does so behind its back.
How:    once W voters have kept up for a while, and answer in time for a lease, the same ones are
        granted anew, with a floor (`raft.configuration`); what is reported then, the controller
        counts on. It is withdrawn by another version, before anything is acknowledged by fewer:

            it is not wanted any more        the key is lower, voters may not leave, writes are
                                             cached (a power failure takes what W voters have), or
                                             a voter's release does not keep to it
            it costs more than it gives      a lease needs as many as the floor says: too few answer
                                             in time, though a majority does, and has answered just
                                             now. Where that is about to be lost, too, the promise
                                             is what the others need
            nothing can be committed with it (`VoterReconciliation.is_stuck`)

        After the last two nothing is promised for a while, and for twice as long each time that was
        within an hour of the one before. What the controller refuses is not asked for again for a
        minute.
Owns:   which groups have a floor, and when each was withdrawn or refused.
Source: design section 6; decision 0041."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from strandline.broker.groups.voter_reconciliation import RETURN_MS, VoterReconciliation
from strandline.config.topic import TopicConfig
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.raft.group.configuration import Configuration, Floor, floor_of
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import Ability

REFUSED_MS = 60_000
"""So long what the controller has refused is not asked for again."""
FORGIVEN_MS = 3_600_000
DOUBLINGS_MAX = 7


@dataclass(slots=True)
class _Withdrawn:
    """The last floor of a group that was withdrawn for its voters' health: of which version, when,
    and how many before it were within an hour of each other."""

    version: int
    at_ms: int
    count: int


class PromisedWriteQuorums:
    """See the module; one per broker."""

    def __init__(self, replication: Replication, acting: VoterReconciliation) -> None:
        self._replication = replication
        self._acting = acting
        self._clock = replication.clock
        self._ratio = replication.settings.patience_ratio
        self._promised: set[GroupId] = set()
        self._withdrawn: dict[GroupId, _Withdrawn] = {}
        self._refused_ms: dict[GroupId, int] = {}

    def wanted(self, replica: Replica, config: TopicConfig, voters: Collection[BrokerId]) -> int:
        """The floor that `voters` should have, who are the present ones where they have any; 0 for
        none, or not now."""
        present, group = replica.configuration, replica.group
        least = _least(present, config, voters)
        if not least:
            return 0
        now = self._clock.monotonic_ms()
        refused_ms = self._refused_ms.get(group)
        if refused_ms is not None and now - refused_ms < REFUSED_MS * self._ratio:
            return 0
        promised = Configuration(present.voters, min_insync=least, floor=least)
        if self._replication.liveness.lease_end_ms(replica, promised) <= now:
            return 0
        if self._has_to_wait(group) or not self._all_keep_to_it(present.voters):
            return 0
        is_calm = self._acting.is_calm(group, replica.self_id, promised)
        return least if is_calm else 0

    def begun(self, replica: Replica, config: TopicConfig, voters: Collection[BrokerId]) -> Floor:
        """The floor that what was granted begins with. None though one was asked for, as it cannot
        be promised just then, counts as withdrawn."""
        floor = self.wanted(replica, config, voters)
        present = replica.configuration
        if not floor and _least(present, config, voters):
            self._note_withdrawn(replica.group, present.version + 1)
        return floor or msgspec.UNSET

    def has_to_go(self, replica: Replica, config: TopicConfig, *, is_stuck: bool) -> bool:
        """Whether the present floor has to be withdrawn. `is_stuck`: see
        `VoterReconciliation.is_stuck`."""
        present, group = replica.configuration, replica.group
        least = floor_of(present.floor)
        if not least:
            self._promised.discard(group)
            return False
        self._promised.add(group)
        if not _is_asked_for(config) or config.min_insync_replicas < least:
            return True
        liveness = self._replication.liveness
        if any(liveness.cannot_do(one, Ability.FLOORS) for one in present.voters):
            return True
        if is_stuck or self._costs_reads(replica):
            self._note_withdrawn(group, present.version)
            return True
        return False

    def ailing(self) -> list[GroupId]:
        """Those led here whose floor may have to be withdrawn: looked at more often than others."""
        found = []
        for group in sorted(self._promised):
            replica = self._replication.replicas.get(group)
            if replica is None or not replica.is_leader:
                self._promised.discard(group)
            elif not replica.lease.is_held:
                found.append(group)
        return found

    def on_refused(self, group: GroupId) -> None:
        """The controller does not grant what was asked for."""
        self._refused_ms[group] = self._clock.monotonic_ms()

    def _costs_reads(self, replica: Replica) -> bool:
        """Whether reads wait for voters that a lease would not need without the floor."""
        if replica.lease.is_held:
            return False
        now, liveness = self._clock.monotonic_ms(), self._replication.liveness
        bare = msgspec.structs.replace(replica.configuration, floor=msgspec.UNSET)
        if liveness.lease_end_ms(replica, bare) <= now:
            return False
        since_ms = now - liveness.lease_ms / 2
        own, session = replica.self_id, liveness.lead_session
        return bare.wins_election(
            [one for one in bare.voters if one == own or session(one).answered_ms >= since_ms]
        )

    def _all_keep_to_it(self, voters: Collection[BrokerId]) -> bool:
        """Whether all voters, and those of the controller, run a release that knows of floors."""
        replication = self._replication
        controller = replication.replicas.get(CONTROLLER_GROUP)
        known = () if controller is None else controller.configuration.all_voters
        own, can_do = replication.self_id, replication.liveness.can_do
        return all(can_do(one, Ability.FLOORS) for one in {*voters, *known} if one != own)

    def _note_withdrawn(self, group: GroupId, version: int) -> None:
        known = self._withdrawn.get(group)
        if known is not None and known.version == version:
            return
        count = 0 if known is None or self._is_forgiven(known) else known.count + 1
        for other in [one for one in self._withdrawn if self._is_forgiven(self._withdrawn[one])]:
            del self._withdrawn[other]
        self._withdrawn[group] = _Withdrawn(version, self._clock.monotonic_ms(), count)

    def _has_to_wait(self, group: GroupId) -> bool:
        known = self._withdrawn.get(group)
        if known is None:
            return False
        wait_ms = RETURN_MS << min(known.count + 1, DOUBLINGS_MAX)
        return self._clock.monotonic_ms() - known.at_ms < wait_ms * self._ratio

    def _is_forgiven(self, known: _Withdrawn) -> bool:
        return self._clock.monotonic_ms() - known.at_ms >= FORGIVEN_MS * self._ratio


def _least(present: Configuration, config: TopicConfig, voters: Collection[BrokerId]) -> int:
    """The floor that `voters` should have when all are well; 0 where a majority is enough, or they
    are not the present ones, or those do not keep to it as they are."""
    least = min(config.min_insync_replicas, len(present.voters))
    if not _is_asked_for(config) or set(voters) != set(present.voters):
        return 0
    is_more = least > len(present.voters) // 2 + 1
    return least if is_more and present.min_insync >= least else 0


def _is_asked_for(config: TopicConfig) -> bool:
    return config.voters_shrink_enable and not config.write_caching
