"""A random schedule from a seed: faults first, then peace, and then the group must get on.

Why:    the interesting orders of events are those that nobody thinks of.
How:    the seed draws the cluster, the faults it has to live with and every single step. In the
        peace that follows everything is delivered and flushed; a leader must be found, a proposal
        must commit everywhere, and a replica that lost its disk must be whole again.
Source: design section 10; Kafka's RaftEventSimulationTest."""

import random
from collections.abc import Callable

from strandline.raft import events
from strandline.raft.configuration import Configuration
from strandline.raft.core import Raft
from tests.raft.cluster.invariants import Violation
from tests.raft.cluster.node import Node
from tests.raft.cluster.world import World

PEACE_ROUND_COUNT_MAX = 60
PEACE_DELIVERY_COUNT_MAX = 20_000


class Schedule:
    """See the module. `run` raises AssertionError (Violation, or the core's own)."""

    def __init__(self, seed: int, core: type[Raft] = Raft) -> None:
        self.seed = seed
        rng = self.rng = random.Random(seed)
        voters = tuple(range(1, rng.choice((1, 2, 3, 3, 3, 4, 5)) + 1))
        node_count = min(6, len(voters) + rng.randint(0, 2))
        observers = tuple(range(len(voters) + 1, node_count + 1)) if rng.random() < 0.5 else ()
        min_insync = rng.choice((1, 1, 2, 3))
        configuration = Configuration(voters, (), observers, min_insync)
        self.world = World(rng, node_count, configuration, core)
        self.step_count = rng.choice((100, 200, 300))
        # The personality of this schedule.
        self.drop_chance = rng.choice((0.0, 0.05, 0.25))
        self.keep_chance = rng.choice((0.0, 0.05, 0.2))
        self.reorder = rng.choice((1.0, 2.0, 4.0))
        self.relaxed_chance = rng.choice((0.0, 0.0, 0.5))
        self.world.crash_chance = rng.choice((0.0, 0.002, 0.01))
        self.world.loses_power = rng.random() < 0.8
        self.wipes_left = 1 if len(voters) >= 3 and rng.random() < 0.25 else 0
        actions: dict[Callable[[], None], float] = {
            self._deliver: 55,
            self._flush: rng.choice((4, 12, 20)),
            self._propose: rng.choice((3, 8)),
            self._time_out: rng.choice((1, 3)),
            self._contact: 2,
            self._reset_peer: rng.choice((1, 3)),
            self._lose_quorum: rng.choice((0, 0.3)),
            self._crash: rng.choice((0, 0.5, 1.5)),
            self._restart: rng.choice((2, 6)),
            self._cut: rng.choice((0, 0.7)),
            self._heal: 1,
            self._transfer: rng.choice((0, 0.7)),
            self._abandon: 0.5,
            self._change: rng.choice((0, 0, 1, 3)),
            self._retain: rng.choice((0, 0.7)),
            self._wipe: 0.4 if self.wipes_left else 0,
        }
        self._actions = list(actions)
        self._weights = [sum(list(actions.values())[: at + 1]) for at in range(len(actions))]

    def run(self) -> None:
        """Trouble, then peace."""
        world = self.world
        picks = self.rng.choices(self._actions, cum_weights=self._weights, k=self.step_count)
        for action in picks:
            world.now += 1
            action()
        world.note("peace")
        self._make_peace()

    # ---- trouble ---------------------------------------------------------------------------------

    def _living(self) -> list[Node]:
        return [node for node in self.world.nodes.values() if node.is_alive]

    def _deliver(self) -> None:
        flight = self.world.flight
        if not flight:
            self._time_out()
            return
        at = int(len(flight) * self.rng.random() ** self.reorder)
        at = at if self.reorder < 3 else min(at, 2)
        if self.rng.random() < self.drop_chance:
            del flight[at]
        else:
            self.world.deliver(at, keep=self.rng.random() < self.keep_chance)

    def _flush(self) -> None:
        waiting = [node for node in self._living() if node.flushes]
        if waiting:
            self.rng.choice(waiting).end_flush(self.rng)

    def _propose(self) -> None:
        leaders = self.world.leaders()
        if leaders:
            leader = self.rng.choice(leaders)
            if leader.raft.accepts_proposals:
                counts = [self.rng.randint(1, 3) for _ in range(self.rng.randint(1, 2))]
                leader.propose(counts, relaxed=self.rng.random() < self.relaxed_chance)

    def _time_out(self) -> None:
        living = [n for n in self._living() if not n.hears_leader or self.rng.random() < 0.05]
        if living:
            self.rng.choice(living).step(events.ElectionTimedOut())

    def _contact(self) -> None:
        leaders = self.world.leaders()
        if leaders:
            leader = self.rng.choice(leaders)
            for peer in list(leader.raft.progress):
                leader.contact(peer)

    def _reset_peer(self) -> None:
        leaders = self.world.leaders()
        if leaders:
            leader = self.rng.choice(leaders)
            if leader.raft.progress:
                leader.step(events.PeerReset(self.rng.choice(list(leader.raft.progress))))

    def _lose_quorum(self) -> None:
        leaders = self.world.leaders()
        if leaders:
            self.rng.choice(leaders).step(events.QuorumLost())

    def _crash(self) -> None:
        living = self._living()
        if living:
            node = self.rng.choice(living)
            self.world.note(f"{node.id} crashes")
            node.crash(loses_power=self.world.loses_power)

    def _restart(self) -> None:
        dead = [node for node in self.world.nodes.values() if not node.is_alive]
        if dead:
            node = self.rng.choice(dead)
            self.world.note(f"{node.id} starts")
            node.start()

    def _cut(self) -> None:
        ids = list(self.world.nodes)
        if self.rng.random() < 0.5:
            alone = self.rng.choice(ids)
            self.world.cuts.update((alone, other) for other in ids)
            if self.rng.random() < 0.7:
                self.world.cuts.update((other, alone) for other in ids)
        else:
            side = set(self.rng.sample(ids, len(ids) // 2))
            self.world.cuts.update((a, b) for a in ids for b in ids if (a in side) != (b in side))

    def _heal(self) -> None:
        self.world.cuts.clear()

    def _transfer(self) -> None:
        leaders = self.world.leaders()
        if leaders:
            to = self.rng.choice(list(self.world.nodes))
            self.rng.choice(leaders).step(events.TransferLeadership(to))

    def _abandon(self) -> None:
        for leader in self.world.leaders():
            leader.step(events.AbandonTransfer())

    def _change(self) -> None:
        leaders = self.world.leaders()
        if not leaders:
            return
        ids = list(self.world.nodes)
        self.rng.shuffle(ids)
        count = self.rng.randint(1, min(len(ids), 5))
        voters = tuple(ids[:count])
        observers = tuple(ids[count : count + self.rng.randint(0, 2)])
        change = events.ChangeConfiguration(voters, observers, self.rng.choice((1, 2, 3)))
        self.rng.choice(leaders).step(change)

    def _retain(self) -> None:
        living = self._living()
        if living:
            self.rng.choice(living).drop_prefix(self.rng)

    def _wipe(self) -> None:
        living = self._living()
        if living and self.wipes_left:
            node = self.rng.choice(living)
            self.wipes_left -= 1
            self.world.note(f"{node.id} loses its disk")
            node.wipe()

    # ---- peace -----------------------------------------------------------------------------------

    def _make_peace(self) -> None:
        world = self.world
        world.crash_chance = 0.0
        world.cuts.clear()
        for node in world.nodes.values():
            if not node.is_alive:
                node.start()
        for round_number in range(PEACE_ROUND_COUNT_MAX):
            world.now += 100
            self._settle()
            leader = self._settled_leader()
            if leader is None:
                self._encourage(round_number)
                continue
            leader.propose([1, 2], relaxed=False)
            end = leader.disk.image.last_index
            self._settle()
            if self._has_all(leader, end):
                return
            for peer in list(leader.raft.progress):
                leader.step(events.PeerReset(peer))
        if self._is_beyond_repair():
            return
        lines = [
            f"{node.id}: {node.raft.role.name} epoch {node.raft.epoch} leader {node.raft.leader}"
            f" commit {node.raft.commit} of {node.disk.image.last_index} {node.raft.configuration}"
            f" amnesiac {node.raft.is_amnesiac}"
            for node in world.nodes.values()
        ]
        raise Violation("Progress: the group is stuck\n" + "\n".join(lines))

    def _is_beyond_repair(self) -> bool:
        """Whether those who never lost their disk are no majority somewhere: nobody may go on."""
        nodes = self.world.nodes.values()
        whole = [node.id for node in nodes if not node.raft.is_amnesiac]
        return any(not node.raft.configuration.wins_election(whole) for node in nodes)

    def _settle(self) -> None:
        """Deliver and flush until nothing is left to do."""
        world = self.world
        for _ in range(PEACE_DELIVERY_COUNT_MAX):
            flushing = [node for node in world.nodes.values() if node.flushes]
            if world.flight:
                for node in world.nodes.values():
                    node.heard_step = world.now
                world.deliver(0)
            elif flushing:
                flushing[0].end_flush(self.rng)
            else:
                return
        raise Violation("Progress: the group never comes to rest")

    def _settled_leader(self) -> Node | None:
        leaders = self.world.leaders()
        if not leaders:
            return None
        leader = leaders[-1]
        raft = leader.raft
        is_quiet = raft.may_serve and raft.accepts_proposals
        is_stable = not raft.configuration.is_joint and raft.configuration_index <= raft.commit
        return leader if is_quiet and is_stable and leader.id in raft.configuration.voters else None

    def _encourage(self, round_number: int) -> None:
        """What time-outs would do."""
        leaders = self.world.leaders()
        for leader in leaders:
            leader.step(events.AbandonTransfer())
            for peer in list(leader.raft.progress):
                if leader.raft.is_leader:
                    leader.step(events.PeerReset(peer))
        if not leaders or round_number % 4 == 3:
            for leader in leaders:
                leader.step(events.QuorumLost())
            for node in self.world.nodes.values():
                node.raft._state.leader = -1 if not node.raft.is_leader else node.raft.leader
            self.rng.choice(list(self.world.nodes.values())).step(events.ElectionTimedOut())

    def _has_all(self, leader: Node, end: int) -> bool:
        """Whether every member has everything, knows it, and counts again."""
        if leader.raft.commit < end:
            return False
        members = [self.world.nodes[member] for member in leader.raft.configuration.members]
        return all(n.raft.commit >= end and not n.raft.is_amnesiac for n in members)


def describe(seed: int) -> str:
    """How to see a schedule again."""
    return f"seed {seed}; replay: python -m tests.raft.cluster.replay {seed}"
