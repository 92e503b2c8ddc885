"""One replica: a core, its disk, and a driver of the simplest kind.

Why:    performs effects in order, and may be stopped between any two of them.
How:    messages go to the world; flushes end when the world says so; record batches travel beside
        the message that describes them.
Owns:   the disk for ever, the core until the next crash."""

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.raft.cluster.disk import Batch, Disk, LogImage

from strandline.raft import events, messages
from strandline.raft.core import Raft
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.leader.progress import AppendPlan

if TYPE_CHECKING:
    from tests.raft.cluster.world import World


PEER_CATCHUP = messages.PeerCatchupRequest | messages.PeerAppend
FROM_LEADERS = messages.AppendRequest | messages.LeaderContact | messages.ResetRequest


@dataclass(frozen=True)
class Carried:
    """An append to who gets it and, through that one, to others."""

    request: messages.AppendRequest
    to: tuple[int, ...]


class Node:
    """See the module."""

    def __init__(self, world: "World", node_id: int, configuration: Configuration) -> None:
        self.world = world
        self.id = node_id
        self.disk = Disk(configuration)
        self.is_alive = False
        self.raft: Any = None
        # [(ticket of the disk, index, generation)] of flushes under way.
        self.flushes: list[tuple[int, int, int]] = []
        # What a lost disk had made durable.
        self.lost_images: list[LogImage] = []
        # Orders to lend that were not obeyed yet.
        self.catchup_requests: list[messages.PeerCatchupRequest] = []
        # {epoch: last index proposed as relaxed}
        self.unflushed_visible: dict[int, int] = {}
        # The configuration before the present step: what commits were counted by.
        self.counted = configuration
        # The epoch whose acknowledgements it counts in the present step, or -1.
        self.counted_epoch = -1
        self.heard_step = -world.patience_steps
        self.timed_out_step = -world.patience_steps
        self._has_new_marks = False
        self.noted_commit = -1
        self.start()

    # ---- life and death --------------------------------------------------------------------------

    def start(self) -> None:
        """Build the core from the disk."""
        image = self.disk.image
        self.raft = self.world.make_core(
            self,
            LogShape(
                first_index=image.start_index,
                last_index=image.last_index,
                flushed_index=self.disk.durable.last_index if not self.disk.has_pending else -1,
                previous_epoch=image.previous_epoch,
                start_offset=image.start_offset,
                epochs=image.epochs(),
                configurations=image.configurations(),
            ),
        )
        self.is_alive = True
        self.flushes = []
        self.catchup_requests = []
        self.heard_step = -self.world.patience_steps
        self.world.watch("on_start", self)
        self.flush_soon()

    def crash(self, *, loses_power: bool) -> None:
        """Stop between two effects; what was not flushed may be gone."""
        self.is_alive = False
        self.flushes = []
        # A driver may note how far the commit is, where that is durable; but not while the core is
        # ahead of effects that were not performed.
        log, image = self.raft.log, self.disk.image
        is_ahead = (log.first_index, log.last_index) != (image.start_index, image.last_index)
        self.noted_commit = min(self.raft.commit, log.flushed_index)
        if self.world.rng.random() < 0.5 or is_ahead:
            self.noted_commit = -1
        if loses_power and self.disk.lose_power(self.world.rng):
            self.world.watch("on_loss", self)

    def wipe(self) -> None:
        """Lose the disk. The replica knows that it was a member."""
        self.is_alive = False
        self.flushes = []
        self.noted_commit = -1
        self.lost_images.append(self.disk.durable)
        self.disk = Disk(self.world.first_configuration)
        self.disk.is_whole = False
        self.world.watch("on_loss", self)

    # ---- stepping --------------------------------------------------------------------------------

    def receive(
        self, sender: int, message: messages.Message | Carried, batches: list[Batch]
    ) -> None:
        """A message came in; what names others is handed on before it is written."""
        if isinstance(message, Carried):
            request = message.request
            for peer in message.to if request.epoch >= self.raft.epoch else ():
                self.world.send(self.id, peer, messages.PeerAppend(request), batches)
            message = request
        alive = self.hears_leader and self.raft.leader != sender
        if isinstance(message, FROM_LEADERS) and message.epoch >= self.raft.epoch:
            self.heard_step = self.world.now
        self.step(events.Received(sender, message, alive), batches)

    @property
    def has_counted(self) -> bool:
        """Whether marks that moved in the present step were counted here, by a leader, or by one
        that has handed over."""
        return self.counted_epoch >= 0

    def _counting_epoch(self, event: events.Event) -> int:
        if isinstance(event, events.Received) and isinstance(
            event.message, FROM_LEADERS | PEER_CATCHUP
        ):
            return -1
        handing_over = self.raft.state.handing_over
        if handing_over is not None:
            return int(handing_over.epoch)
        return int(self.raft.epoch) if self.raft.is_leader else -1

    def is_due(self, now: int) -> bool:
        """Whether its election time-out may have come."""
        return not self.hears_leader and now - self.timed_out_step >= self.world.round_steps

    @property
    def hears_leader(self) -> bool:
        """What a driver's timer would say."""
        is_recent = self.world.now - self.heard_step < self.world.patience_steps
        return self.raft.leader >= 0 and (self.raft.is_leader or is_recent)

    def step(self, event: events.Event, batches: list[Batch] = []) -> None:  # noqa: B006
        """Step the core and perform its effects; may crash in between."""
        self.counted = self.raft.configuration
        self.counted_epoch = self._counting_epoch(event)
        world = self.world
        effects = world.trace_step(self, event)
        for effect in effects:
            if isinstance(effect, events.PeerRefused):
                continue  # There is no window here that it would clear.
            if world.crash_chance and world.rng.random() < world.crash_chance:
                world.note(f"{self.id} crashes before {effect}")
                self.crash(loses_power=world.loses_power)
                return
            self._perform(effect, batches)
            if not self.is_alive:
                return
        assert self.raft.log.last_index == self.disk.image.last_index, "shape and log differ"
        if self._has_new_marks and self.raft.is_leader:
            self._tell_marks(world.rng)
        self._has_new_marks = False

    def _perform(self, effect: events.Effect, batches: list[Batch]) -> None:
        world = self.world
        kind = type(effect)
        if kind is events.Send:
            world.send(self.id, effect.to, effect.message, [])
        elif kind is events.ReplicationReady:
            self.pump(effect.peer)
        elif kind is events.AppendEntries:
            self._append([b for b in batches if b.first_index >= effect.first_index], effect)
        elif kind is events.MarksAdvanced:
            world.watch_marks(self, effect.commit, effect.visible)
            self._has_new_marks = True
        elif kind is events.PersistState:
            self.disk.epoch = effect.epoch
            self.disk.vote = effect.vote
            self.disk.delegated_epoch = effect.delegated_epoch
        elif kind is events.AppendMarker:
            batch = Batch(
                effect.index,
                effect.index,
                effect.epoch,
                world.next_id(),
                True,
                effect.configuration,
            )
            self._append([batch], effect)
        elif kind is events.TruncateLog:
            world.watch("on_truncate", self, effect.from_index)
            self.disk.truncate(effect.from_index)
        elif kind is events.ResetLog:
            image = LogImage(effect.configuration)
            image.start_index = effect.start_index
            image.start_offset = effect.start_offset
            image.previous_epoch = effect.previous_epoch
            world.watch("on_reset", self, effect.start_index, effect.start_offset)
            self.disk.reset(image)
        elif kind is events.BecameLeader:
            world.watch("on_leader", self)
        elif kind is events.Rejoined:
            self.disk.is_whole = True
        elif kind is events.SendPeerAppend:
            self.catchup_requests.append(effect.request)
            if world.rng.random() < 0.5:
                self.lend()
        else:
            assert kind in (events.BecameFollower, events.ConfigurationChanged), effect

    def _append(self, batches: list[Batch], effect: object) -> None:
        assert batches, effect
        for batch in batches:
            image = self.disk.image
            previous = image.batches[-1].epoch if image.batches else image.previous_epoch
            self.disk.append(batch)
            self.world.watch("on_append", self, batch, previous)
        self.flush_soon()

    # ---- the disk --------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Ask for a flush of all that is written."""
        index = self.disk.image.last_index
        self.flushes.append((self.disk.begin_flush(), index, self.raft.log.generation))

    def end_flush(self, rng: random.Random) -> None:
        """One of the flushes under way ends, not always the first."""
        ticket, index, generation = self.flushes.pop(rng.randrange(len(self.flushes)))
        self.disk.end_flush(ticket)
        self.step(events.LogFlushed(index, generation))

    def drop_prefix(self, rng: random.Random) -> None:
        """Retention takes some of what is committed and flushed."""
        log = self.raft.log
        limit = min(self.raft.commit, log.flushed_index)
        ends = [b for b in self.disk.image.batches if b.last_index <= limit]
        if not ends or self.disk.durable.last_index < limit:
            return
        first = rng.choice(ends).last_index + 1
        offset = self.disk.image.start_offset
        offset += sum(
            b.last_index - b.first_index + 1
            for b in self.disk.image.batches
            if b.last_index < first and not b.is_marker
        )
        self.step(events.PrefixDropped(first, offset))
        if self.is_alive:
            self.disk.drop_prefix(first, self.raft.start_configuration)

    # ---- leading ---------------------------------------------------------------------------------

    def propose(self, counts: list[int], *, unflushed_visible: bool) -> None:
        """A client's batches."""
        first = self.disk.image.last_index + 1
        start = first
        for count in counts:
            batch = Batch(
                first, first + count - 1, self.raft.epoch, self.world.next_id(), False, None
            )
            self._append([batch], "propose")
            first += count
        if unflushed_visible:
            self.unflushed_visible[self.raft.epoch] = first - 1
        self.step(events.Propose(first - start, unflushed_visible))

    def pump(self, peer: int) -> None:
        """Fill the peer's window."""
        for _ in range(3):
            plan = self.raft.plan_append(peer)
            if plan is None:
                return
            if isinstance(plan, messages.ResetRequest):
                self.world.send(self.id, peer, plan, [])
                self.raft.note_sent(peer, plan.start_index - 1)
                return
            if self.world.peer_catchup_chance and self._order(peer, plan):
                continue
            batches: list[Batch] = []
            last = plan.prev_index
            if plan.first_index <= plan.last_index:
                image = self.disk.image
                at = image.position(plan.first_index)
                batches = image.batches[at : at + self.world.rng.randint(1, 4)]
                last = batches[-1].last_index
            log = self.raft.log
            runs = log.runs(plan.first_index, last)
            configurations = log.configurations_between(plan.first_index, last)
            request = plan.request(runs, configurations)
            to = self._behind(peer, plan) if self.world.relay_chance and batches else ()
            self.world.send(self.id, peer, Carried(request, to) if to else request, batches)
            for one in (peer, *to):
                self.raft.note_sent(one, last)

    def _behind(self, relay: int, plan: AppendPlan) -> tuple[int, ...]:
        """Who gets through `relay` what it is sent, as often as the schedule asks for."""
        progress = self.raft.progress
        if plan.is_probe or self.world.rng.random() >= self.world.relay_chance:
            return ()
        return tuple(
            one
            for one, its in progress.items()
            if one != relay
            and its.next_index == plan.first_index
            and not its.is_probing
            and not its.is_recovering
            and not progress[relay].is_recovering
        )

    def _order(self, peer: int, plan: AppendPlan) -> bool:
        """Have somebody else send it, as often as the schedule asks for; whether that was done."""
        world = self.world
        if plan.first_index > plan.last_index or world.rng.random() >= world.peer_catchup_chance:
            return False
        raft = self.raft
        able = [
            one
            for one in raft.progress
            if one != peer and raft.peer_fetch_end(one) >= plan.first_index
        ]
        if not able:
            return False
        fetch_source = world.rng.choice(able)
        at = self.disk.image.position(plan.first_index)
        batches = self.disk.image.batches[at : at + world.rng.randint(1, 4)]
        last = max(
            (b.last_index for b in batches if b.last_index <= raft.peer_fetch_end(fetch_source)),
            default=-1,
        )
        if last < plan.first_index:
            return False
        request = plan.request(
            raft.log.runs(plan.first_index, last),
            raft.log.configurations_between(plan.first_index, last),
        )
        world.send(self.id, fetch_source, messages.PeerCatchupRequest(peer, request, 0, False), [])
        raft.note_sent(peer, last)
        return True

    # ---- lending ---------------------------------------------------------------------------------

    def lend(self) -> None:
        """Obey the oldest order, if that may be done still."""
        catchup = self.catchup_requests.pop(0)
        request = catchup.request
        if not self.raft.may_serve_peer(request):
            return
        end = request.runs[-1].last_index
        batches = [b for b in self.disk.image.batches if request.prev_index < b.first_index <= end]
        self.world.send(self.id, catchup.to, messages.PeerAppend(request), batches)

    def _tell_marks(self, rng: random.Random) -> None:
        by_append = rng.random() < 0.5
        for peer in list(self.raft.progress):
            if by_append:
                self.pump(peer)
            else:
                self.contact(peer)

    def contact(self, peer: int) -> None:
        """A heartbeat with the marks."""
        raft = self.raft
        contact = messages.LeaderContact(raft.epoch, raft.commit, raft.visible)
        self.world.send(self.id, peer, contact, [])


__all__ = ["Node", "Raft"]
