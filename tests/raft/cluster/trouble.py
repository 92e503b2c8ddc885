"""Everything that can happen to a cluster, one method each, driven by a seed.

Why:    the interesting orders of events are those that nobody thinks of.
How:    each step draws an action by its weight, and the action draws its victim.
Owns:   the order of events."""

import random

from tests.raft.cluster.character import Character
from tests.raft.cluster.node import Node
from tests.raft.cluster.world import World

from strandline.raft import events, messages


class Trouble:
    """See the module. Every action is a method without arguments, named in `Character.weights`."""

    def __init__(self, world: World, rng: random.Random, character: Character) -> None:
        self._world = world
        self._rng = rng
        self._character = character
        self._wipes_left = character.wipe_count

    def make(self) -> None:
        """As many steps as the character asks for."""
        weights = self._character.weights
        actions = [getattr(self, name) for name in weights]
        count = self._character.step_count
        for action in self._rng.choices(actions, weights=list(weights.values()), k=count):
            self._world.now += 1
            action()

    def _living(self) -> list[Node]:
        return [node for node in self._world.nodes.values() if node.is_alive]

    def _moving(self) -> list[Node]:
        return [node for node in self._living() if node.id not in self._world.stopped]

    def deliver(self) -> None:
        """Some messages come, are lost, or come and will come again."""
        for _ in range(self._rng.choice((1, 2, 4))):
            if not self._world.flight:
                self._rng.choice((self.time_out, self.reset_peer, self.propose, self.flush))()
                return
            self._deliver_one()

    def _deliver_one(self) -> None:
        flight = self._world.flight
        at = int(len(flight) * self._rng.random() ** self._character.reorder)
        at = at if self._character.reorder < 3 else min(at, 2)
        if flight[at][1] in self._world.stopped:
            return
        if self._rng.random() < self._character.drop_chance:
            del flight[at]
        else:
            self._world.deliver(at, keep=self._rng.random() < self._character.keep_chance)

    def flush(self) -> None:
        """A disk is done with a flush."""
        waiting = [node for node in self._living() if node.flushes]
        if waiting:
            self._rng.choice(waiting).end_flush(self._rng)

    def propose(self) -> None:
        """A client writes."""
        leaders = self._world.leaders()
        if leaders:
            leader = self._rng.choice(leaders)
            if leader.raft.accepts_proposals:
                counts = [self._rng.randint(1, 3) for _ in range(self._rng.randint(1, 2))]
                leader.propose(
                    counts,
                    unflushed_visible=self._rng.random() < self._character.unflushed_visible_chance,
                )

    def time_out(self) -> None:
        """Somebody has waited long enough for a leader, or thinks so."""
        due = [n for n in self._moving() if n.is_due(self._world.now)]
        if due:
            # Several at once split the votes, and meet in one epoch.
            for node in self._rng.sample(due, min(len(due), self._rng.choice((1, 1, 2)))):
                node.timed_out_step = self._world.now
                node.step(events.ElectionTimedOut())
        elif self._rng.random() < 0.02 and self._living():
            self._rng.choice(self._living()).step(events.ElectionTimedOut())

    def contact(self) -> None:
        """A leader's heartbeat."""
        leaders = self._world.leaders()
        if leaders:
            leader = self._rng.choice(leaders)
            for peer in list(leader.raft.progress):
                leader.contact(peer)

    def reset_peer(self) -> None:
        """A leader gives up on what is in flight to a peer, or asks whether it has arrived."""
        leaders = self._world.leaders()
        if leaders:
            leader = self._rng.choice(leaders)
            if leader.raft.progress:
                peer = self._rng.choice(list(leader.raft.progress))
                is_lost = self._world.now % 2
                leader.step(events.PeerReset(peer) if is_lost else events.PeerTimedOut(peer))

    def lose_quorum(self) -> None:
        """A leader steps down by itself."""
        leaders = self._world.leaders()
        if leaders:
            self._rng.choice(leaders).step(events.QuorumLost())

    def unseat(self) -> None:
        """What makes elections: the leader cut off or dead, and nobody hears of one."""
        leaders = self._world.leaders()
        if not leaders:
            return
        leader = leaders[-1]
        for node in self._world.nodes.values():
            node.heard_step = -self._world.patience_steps
        if self._rng.random() < 0.3:
            self._world.note(f"{leader.id} crashes")
            leader.crash(loses_power=self._world.loses_power)
        elif self._rng.random() < 0.7:
            for other in self._world.nodes:
                self._world.cuts.add((leader.id, other))
                self._world.cuts.add((other, leader.id))

    def crash(self) -> None:
        """A node stops."""
        living = self._living()
        if living:
            node = self._rng.choice(living)
            self._world.note(f"{node.id} crashes")
            node.crash(loses_power=self._world.loses_power)

    def restart(self) -> None:
        """A node that has stopped starts."""
        dead = [node for node in self._world.nodes.values() if not node.is_alive]
        if dead:
            node = self._rng.choice(dead)
            self._world.note(f"{node.id} starts")
            node.start()

    def cut(self) -> None:
        """The network parts, perhaps one way."""
        ids = list(self._world.nodes)
        if self._rng.random() < 0.5:
            alone = self._rng.choice(ids)
            self._world.cuts.update((alone, other) for other in ids)
            if self._rng.random() < 0.7:
                self._world.cuts.update((other, alone) for other in ids)
        else:
            side = set(self._rng.sample(ids, len(ids) // 2))
            self._world.cuts.update((a, b) for a in ids for b in ids if (a in side) != (b in side))

    def heal(self) -> None:
        """The network is whole again."""
        self._world.cuts.clear()

    def transfer(self) -> None:
        """Somebody wants another leader."""
        leaders = self._world.leaders()
        if leaders:
            to = self._rng.choice(list(self._world.nodes))
            self._rng.choice(leaders).step(events.TransferLeadership(to))

    def abandon(self) -> None:
        """Transfers took too long."""
        for node in self._living():
            node.step(events.AbandonTransfer())

    def strand(self) -> None:
        """Leadership goes to a process that is stopped; another one is, too. What is sent to them
        waits."""
        leaders = self._world.leaders()
        if leaders:
            leader = self._rng.choice(leaders)
            stopped = self._rng.sample(list(self._world.nodes), 2)
            self._world.stopped.update(one for one in stopped if one != leader.id)
            leader.step(events.TransferLeadership(stopped[0]))

    def orphan(self) -> None:
        """An order to stand takes its time, nobody else hears of a leader, some start anew."""
        flight = self._world.flight
        transfer_targets = [
            to for _, to, message, _ in flight if isinstance(message, messages.TimeoutNow)
        ]
        if transfer_targets:
            self._world.stopped = {transfer_targets[-1]}
            for node in self._living():
                node.heard_step = node.timed_out_step = -self._world.patience_steps
                if self._rng.random() < 0.4 and node.id != transfer_targets[-1]:
                    node.crash(loses_power=self._world.loses_power)
                    node.start()

    def resume(self) -> None:
        """A process that was stopped goes on."""
        if self._world.stopped:
            self._world.stopped.discard(self._rng.choice(sorted(self._world.stopped)))

    def go_on(self) -> None:
        """Transfers have waited long enough for promises."""
        for node in self._living():
            node.step(events.DelegationsTimedOut())

    def lend(self) -> None:
        """Somebody obeys an order, late."""
        ordered = [node for node in self._living() if node.catchup_requests]
        if ordered:
            self._rng.choice(ordered).lend()

    def change(self) -> None:
        """Somebody wants other members."""
        leaders = self._world.leaders()
        if not leaders:
            return
        ids = list(self._world.nodes)
        self._rng.shuffle(ids)
        count = self._rng.randint(1, min(len(ids), 5))
        voters = tuple(ids[:count])
        observers = tuple(ids[count : count + self._rng.randint(0, 2)])
        change = events.ChangeConfiguration(voters, observers, self._rng.choice((1, 1, 1, 2, 3)))
        self._rng.choice(leaders).step(change)

    def lower(self) -> None:
        """A leader does with a majority, whatever goes on; or asks for more again."""
        leaders = self._world.leaders()
        if leaders:
            leader = self._rng.choice(leaders)
            present = leader.raft.configuration
            least = self._rng.choice((1, 1, 3))
            leader.step(events.ChangeConfiguration(present.voters, present.observers, least))

    def retain(self) -> None:
        """Retention."""
        living = self._living()
        if living:
            self._rng.choice(living).drop_prefix(self._rng)

    def wipe(self) -> None:
        """A node loses its disk."""
        living = self._living()
        if living and self._wipes_left:
            node = self._rng.choice(living)
            self._wipes_left -= 1
            self._world.note(f"{node.id} loses its disk")
            node.wipe()
