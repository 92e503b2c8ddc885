"""Peace: no more faults, and the group must get on by itself.

Why:    a group that is safe because it does nothing is of no use.
How:    everything is delivered and flushed, time-outs come when nothing else is left to do; a
        leader must be found, a proposal must commit and be known everywhere, and a replica that
        lost its disk must be whole again. Then every voter may stand for election, and whoever was
        removed and can ask one who knows falls silent.
Owns:   the end of a schedule."""

import random

from tests.raft.cluster.invariants import InvariantError
from tests.raft.cluster.node import Node
from tests.raft.cluster.world import World

from strandline.raft import events

ROUND_COUNT_MAX = 60
DELIVERY_COUNT_MAX = 20_000


class Peace:
    """See the module."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    def make(self) -> None:
        """Raises InvariantError when the group does not get on."""
        world = self._world
        world.crash_chance = world.peer_catchup_chance = world.relay_chance = 0.0
        world.cuts.clear()
        world.stopped.clear()
        for node in world.nodes.values():
            if not node.is_alive:
                node.start()
        for round_number in range(ROUND_COUNT_MAX):
            world.now += 100
            self._settle()
            leader = self._settled_leader()
            if leader is None:
                self._encourage(round_number)
                continue
            leader.propose([1, 2], unflushed_visible=False)
            end = leader.disk.image.last_index
            self._settle()
            if self._has_all(leader, end):
                self._check_who_stands(leader)
                return
            silent = events.PeerTimedOut if round_number % 2 else events.PeerReset
            for peer in list(leader.raft.progress):
                leader.step(silent(peer))
        if self._is_beyond_repair():
            return
        lines = [
            f"{node.id}: {node.raft.role.name} epoch {node.raft.epoch} leader {node.raft.leader}"
            f" commit {node.raft.commit} of {node.disk.image.last_index} {node.raft.configuration}"
            f" amnesiac {node.raft.has_lost_state}"
            for node in world.nodes.values()
        ]
        raise InvariantError("Progress: the group is stuck\n" + "\n".join(lines))

    def _is_beyond_repair(self) -> bool:
        """Whether those who never lost their disk are no majority somewhere: nobody may go on."""
        nodes = self._world.nodes.values()
        whole = [node.id for node in nodes if not node.raft.has_lost_state]
        return any(not node.raft.configuration.wins_election(whole) for node in nodes)

    def _settle(self) -> None:
        """Deliver and flush until nothing is left to do."""
        world = self._world
        for _ in range(DELIVERY_COUNT_MAX):
            flushing = [node for node in world.nodes.values() if node.flushes]
            if world.flight:
                for node in world.nodes.values():
                    node.heard_step = world.now
                world.deliver(0)
            elif flushing:
                flushing[0].end_flush(self._rng)
            else:
                return
        raise InvariantError("Progress: the group never comes to rest")

    def _settled_leader(self) -> Node | None:
        leaders = self._world.leaders()
        if not leaders:
            return None
        leader = leaders[-1]
        raft = leader.raft
        is_quiet = raft.may_serve and raft.accepts_proposals
        is_stable = not raft.configuration.is_joint and raft.configuration_index <= raft.commit
        return leader if is_quiet and is_stable and leader.id in raft.configuration.voters else None

    def _encourage(self, round_number: int) -> None:
        """What time-outs would do."""
        leaders = self._world.leaders()
        for leader in leaders:
            leader.step(events.AbandonTransfer())
            for peer in list(leader.raft.progress):
                if leader.raft.is_leader:
                    leader.step(events.PeerTimedOut(peer))
        if not leaders or round_number % 4 == 3:
            for leader in leaders:
                leader.step(events.QuorumLost())
            for node in self._world.nodes.values():
                node.raft.state.leader = -1 if not node.raft.is_leader else node.raft.leader
            self._rng.choice(list(self._world.nodes.values())).step(events.ElectionTimedOut())

    def _check_who_stands(self, leader: Node) -> None:
        nodes = self._world.nodes
        configuration = leader.raft.configuration
        for voter in configuration.voters:
            if not nodes[voter].raft._membership.may_campaign:
                raise InvariantError(f"Progress: voter {voter} never stands for election")
        others = [node for node in nodes.values() if node.id not in configuration.members]
        for node in 2 * others:
            node.step(events.ElectionTimedOut())
            self._settle()
        for node in others:
            node.step(events.ElectionTimedOut())
            can_ask = set(node.raft.configuration.all_voters) & set(configuration.members)
            if self._world.flight and can_ask:
                raise InvariantError(f"Silence: {node.id} was removed and asks for votes")
            self._world.flight.clear()

    def _has_all(self, leader: Node, end: int) -> bool:
        """Whether every member has everything, knows it, and counts again."""
        if leader.raft.commit < end:
            return False
        members = [self._world.nodes[member] for member in leader.raft.configuration.members]
        return all(n.raft.commit >= end and not n.raft.has_lost_state for n in members)
