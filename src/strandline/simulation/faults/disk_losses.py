"""Which disks may be lost: every promise assumes that no two are missing at the same time.

Why:    a fault that takes the last copy of a record breaks a promise that nobody gave.
How:    before a disk is taken, the other brokers are asked whether they are whole: open, with all
        that they promised, and nothing of an earlier loss still to be copied.
Owns:   the brokers whose disk was lost and that were not seen whole again.
Source: design section 10; decisions 0016 and 0027."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from strandline.model.ids import BrokerId, GroupId
from strandline.raft.group.configuration import Configuration
from strandline.simulation.disk.damage import has_rotten_segments
from strandline.simulation.faults.kinds import ROT
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.member import Member


class DiskLosses:
    """See the module. `begun_kinds`: the kinds of faults that were tried so far."""

    def __init__(
        self,
        scenario: Scenario,
        hosts: Mapping[BrokerId, SimHost[Member]],
        checker: Checker,
        *,
        begun_kinds: AbstractSet[str],
    ) -> None:
        self._scenario = scenario
        self._hosts = hosts
        self._checker = checker
        self._begun_kinds = begun_kinds
        self._incomplete: set[BrokerId] = set()
        """Brokers whose disk was lost and that have not been seen to be whole again."""

    def may_lose(self, broker: BrokerId) -> bool:
        """Whether the others are enough, every disk lost before is made good for, and what has
        rotted is mended."""
        if not self.has_spare_voters(broker):
            return False
        rotting = self._scenario.rotting_broker
        has_rotted = self._begun_kinds & ROT and has_rotten_segments(self._hosts[rotting].disk)
        if has_rotted and rotting != broker:
            return False
        # A broker that has to detect a lost disk by itself takes no part before, on any disk.
        candidates = self._scenario.brokers if self._scenario.asks_voters else self._incomplete
        self._incomplete = {b for b in candidates if not self._is_whole(b)}
        return not self._incomplete

    def may_replace(self, broker: BrokerId) -> bool:
        """Whether all others are whole: a broker with an empty disk needs no more than them."""
        others = [other for other in self._scenario.brokers if other != broker]
        return all(self._is_whole(other) for other in others)

    def may_spare(self, broker: BrokerId) -> bool:
        """Whether everything that was acknowledged stays where that broker loses its disk, whatever
        voters may be in force, and the group can go on without a person.

        No disk lost before may be missing. A record is on W of N voters, a majority at least: with
        one of them gone N - W + 1 others hold it all, where there are two. Who is down keeps what
        it had; a single voter is the only one that is sure to have anything. So is one that was
        fenced, and may be chosen alone: nobody could tell afterwards that it never led."""
        self._incomplete = {one for one in self._incomplete if not self._has_opened_all(one)}
        up = [one for one in self._scenario.brokers if self._hosts[one].program is not None]
        if self._incomplete or not all(map(self._has_opened_all, up)):
            return False
        for plan in self._scenario.groups:
            known = self._checker.voters.get(plan.group)
            if known is None:
                placed = self.voters_of(plan.group)
                if placed is None:
                    return False
                possible = placed
            else:
                possible = known.possible
            if any(broker in voters and len(voters) < 2 for voters in possible):
                return False
            is_fenced = known is not None and known.what == "grant"
            if is_fenced and any(broker in voters for voters in possible):
                return False
        return True

    def voters_of(self, group: GroupId) -> tuple[tuple[BrokerId, ...], ...] | None:
        """All voters that may be in force, by the broker with the latest state of the cluster."""
        members = [host.program for host in self._hosts.values()]
        known = [
            (one.made.controller.cluster.version, one.broker, partition.possible)
            for one in members
            if isinstance(one, BrokerMember) and (partition := one.partition_of(group))
        ]
        return max(known)[2] if known else None

    def has_spare_voters(self, broker: BrokerId) -> bool:
        """Whether every group can commit without that broker."""
        for plan in self._scenario.groups:
            voters = Configuration(voters=plan.voters, min_insync=plan.min_insync)
            if broker in plan.voters and len(plan.voters) == voters.write_quorum(plan.voters):
                return False
        return True

    def lose(self, broker: BrokerId) -> None:
        """Take the disk of a broker away."""
        self._incomplete.add(broker)
        self._hosts[broker].lose_disk()

    def _is_whole(self, broker: BrokerId) -> bool:
        member = self._hosts[broker].program
        if member is None:
            return False
        if isinstance(member, BrokerMember) and not member.is_whole():
            return False
        plans = [plan for plan in self._scenario.groups if broker in plan.voters]
        replicas = [member.replication.replicas.get(plan.group) for plan in plans]
        return all(r is not None and not r.raft.has_lost_state for r in replicas)

    def _has_opened_all(self, broker: BrokerId) -> bool:
        """The same, of all that it should hold by now, wherever that was placed."""
        member = self._hosts[broker].program
        has_opened = not isinstance(member, BrokerMember) or member.has_opened_all()
        return has_opened and self._is_whole(broker)
