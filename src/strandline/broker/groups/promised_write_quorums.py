"""Decides when the voters of a group led here promise a write quorum above a majority.

Why:    W voters have what is acknowledged, and any N - W + 1 of the N voters hold all of it. With
        three voters and `min.insync.replicas` 3, each voter alone does. But leaders lower W when
        voters are lost. So the controller may appoint a minority only if the voters have promised
        W.
How:    Once W voters have kept up for a while and answer in time for a lease, the leader asks for
        the same voters again, with a promised W (`floor` in `raft.configuration`). The controller
        counts on it once it is reported. The leader withdraws the promise by a new version, before
        fewer voters acknowledge anything, if

            it is not wanted       the key is lower, voters may not leave, `write.caching` is on (a
                                   power failure takes what W voters have), or the release of a
                                   voter does not know promises
            it blocks reads        a lease needs W voters and too few answer in time, though a
                                   majority has just answered. A group that is about to lose its
                                   majority keeps the promise: the survivors need it
            it blocks commits      see `VoterReconciliation.is_stuck`

        After the last two, no promise is given for a while: twice as long after each withdrawal
        within an hour of the one before. A request that the controller refused waits for a minute.
Owns:   which groups have a promised write quorum; when each was withdrawn or refused.
Source: design section 6; decision 0041."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from strandline.broker.groups.voter_reconciliation import RETURN_MS, VoterReconciliation
from strandline.config.topic import TopicConfig
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.raft.group.configuration import Configuration, PromisedQuorum, promised_quorum_of
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import Ability

REFUSED_MS = 60_000
"""A request that the controller has refused is not repeated for so long."""
FORGIVEN_MS = 3_600_000
DOUBLINGS_MAX = 7


@dataclass(slots=True)
class _Withdrawn:
    """The last promise of a group that was withdrawn because of its voters' health: its version,
    when, and how many before it were within an hour of each other."""

    version: int
    at_ms: int
    count: int


class PromisedWriteQuorums:
    """See the module; one per broker."""

    def __init__(self, replication: Replication, reconciliation: VoterReconciliation) -> None:
        self._replication = replication
        self._reconciliation = reconciliation
        self._clock = replication.clock
        self._ratio = replication.settings.patience_ratio
        self._promised: set[GroupId] = set()
        self._withdrawn: dict[GroupId, _Withdrawn] = {}
        self._refused_ms: dict[GroupId, int] = {}

    def wanted(self, replica: Replica, config: TopicConfig, voters: Collection[BrokerId]) -> int:
        """The write quorum that `voters` should promise now; 0 for none. Only the present voters
        promise one."""
        present, group = replica.configuration, replica.group
        least = _least(present, config, voters)
        if not least:
            return 0
        now = self._clock.monotonic_ms()
        refused_ms = self._refused_ms.get(group)
        if refused_ms is not None and now - refused_ms < REFUSED_MS * self._ratio:
            return 0
        promised = Configuration(present.voters, min_insync=least, floor=least)
        if self._replication.bound_votes.lease_end_ms(replica, promised) <= now:
            return 0
        if self._has_to_wait(group) or not self._all_know_promises(present.voters):
            return 0
        is_calm = self._reconciliation.is_calm(group, replica.self_id, promised)
        return least if is_calm else 0

    def begun(
        self, replica: Replica, config: TopicConfig, voters: Collection[BrokerId]
    ) -> PromisedQuorum:
        """The promise that granted voters begin with. If they were to promise one and cannot
        just then, that counts as a withdrawal."""
        floor = self.wanted(replica, config, voters)
        present = replica.configuration
        if not floor and _least(present, config, voters):
            self._note_withdrawn(replica.group, present.version + 1)
        return floor or msgspec.UNSET

    def has_to_go(self, replica: Replica, config: TopicConfig, *, is_stuck: bool) -> bool:
        """Whether the present promise has to be withdrawn. `is_stuck`: see
        `VoterReconciliation.is_stuck`."""
        present, group = replica.configuration, replica.group
        least = promised_quorum_of(present.floor)
        if not least:
            self._promised.discard(group)
            return False
        self._promised.add(group)
        if not _is_wanted(config) or config.min_insync_replicas < least:
            return True
        cannot_do = self._replication.contacts.cannot_do
        if any(cannot_do(one, Ability.PROMISED_QUORUMS) for one in present.voters):
            return True
        if is_stuck or self._costs_reads(replica):
            self._note_withdrawn(group, present.version)
            return True
        return False

    def doubtful(self) -> list[GroupId]:
        """Groups led here whose promise may have to be withdrawn: the leader looks at them more
        often."""
        found = []
        for group in sorted(self._promised):
            replica = self._replication.replicas.get(group)
            if replica is None or not replica.is_leader:
                self._promised.discard(group)
            elif not replica.lease.is_held:
                found.append(group)
        return found

    def on_refused(self, group: GroupId) -> None:
        """The controller has refused the request."""
        self._refused_ms[group] = self._clock.monotonic_ms()

    def _costs_reads(self, replica: Replica) -> bool:
        """Whether reads wait for voters that a lease would not need without the promise."""
        if replica.lease.is_held:
            return False
        now, bound_votes = self._clock.monotonic_ms(), self._replication.bound_votes
        bare = msgspec.structs.replace(replica.configuration, floor=msgspec.UNSET)
        if bound_votes.lease_end_ms(replica, bare) <= now:
            return False
        since_ms = now - bound_votes.lease_ms / 2
        own, replication = replica.self_id, self._replication
        session, is_overdue = replication.contacts.lead_session, replication.exchanges.is_overdue
        answering = [
            one
            for one in bare.voters
            if one == own or (session(one).answered_ms >= since_ms and not is_overdue(one))
        ]
        return bare.wins_election(answering)

    def _all_know_promises(self, voters: Collection[BrokerId]) -> bool:
        """Whether all voters, and the controller's voters, run a release that knows promises."""
        replication = self._replication
        controller = replication.replicas.get(CONTROLLER_GROUP)
        known = () if controller is None else controller.configuration.all_voters
        own, can_do = replication.self_id, replication.contacts.can_do
        return all(can_do(one, Ability.PROMISED_QUORUMS) for one in {*voters, *known} if one != own)

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
    """The write quorum that `voters` should promise when all are well; 0 if a majority suffices,
    if they are not the present voters, or if these go by a lower `min.insync.replicas` now."""
    least = min(config.min_insync_replicas, len(present.voters))
    if not _is_wanted(config) or set(voters) != set(present.voters):
        return 0
    is_more = least > len(present.voters) // 2 + 1
    return least if is_more and present.min_insync >= least else 0


def _is_wanted(config: TopicConfig) -> bool:
    return config.voters_shrink_enable and not config.write_caching
