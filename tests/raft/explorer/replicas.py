"""Replicas as values: every state of one is met once, every step of one is taken once.

Why:    millions of states of a group are made of a few thousand states of its replicas; the real
        core is stepped for these only.
How:    a replica is the core and its log. Its state is frozen into a key, and kept pickled; a step
        is looked up by (state, what was done). The disk is perfect here: what is written is
        durable at once, and a restart loses what is not on it. Disks that lose things are the
        business of `tests.raft.cluster` and the simulator.
Owns:   all states, all steps."""

import pickle
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any

import msgspec

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.raft import events, messages
from strandline.raft.configuration import Configuration
from strandline.raft.core import Raft
from strandline.raft.log_shape import LogShape

Entry = tuple[Epoch, Configuration | None]
Sent = tuple[BrokerId, messages.Message, tuple[Entry, ...]]
"""To whom, what, and the entries that travel beside it."""

_DERIVED = frozenset(
    {"effects", "wake", "ready", "generation", "_state", "_membership", "_everybody", "_quorums"}
)


class Replica:
    """One replica, with a driver that does at once what is asked of it."""

    def __init__(self, self_id: BrokerId, base: Configuration) -> None:
        self.self_id = self_id
        self.base = base
        self.entries: list[Entry] = []
        self.raft = self._core(Epoch(0), BrokerId(-1))
        self.sent: list[Sent] = []

    def _core(self, epoch: Epoch, vote: BrokerId) -> Raft:
        runs: list[tuple[Epoch, Index]] = []
        for index, (entry_epoch, _) in enumerate(self.entries):
            if not runs or runs[-1][0] != entry_epoch:
                runs.append((entry_epoch, Index(index)))
        last = Index(len(self.entries) - 1)
        shape = LogShape(
            first_index=Index(0),
            last_index=last,
            flushed_index=last,
            previous_epoch=Epoch(0),
            start_offset=Offset(0),
            epochs=runs,
            configurations=[(Index(at), one) for at, (_, one) in enumerate(self.entries) if one],
        )
        return Raft(
            group=GroupId(1),
            self_id=self.self_id,
            log=shape,
            epoch=epoch,
            vote=vote,
            configuration=self.base,
        )

    # ---- what may be done to it ------------------------------------------------------------------

    def time_out(self) -> None:
        self._step(events.ElectionTimedOut())
        self.settle()

    def restart(self) -> None:
        self.raft = self._core(self.raft.epoch, self.raft.vote)

    def receive(
        self, sender: BrokerId, message: messages.Message, entries: tuple[Entry, ...]
    ) -> None:
        self.hear(sender, message, entries)
        self.settle()

    def propose(self) -> None:
        if self.raft.accepts_proposals:
            self.entries.append((self.raft.epoch, None))
            self._step(events.Propose(1, False))
            self._flush()
            self.settle()

    def change(self, wanted: Configuration) -> None:
        self._step(
            events.ChangeConfiguration(
                wanted.voters, wanted.observers, wanted.min_insync, wanted.version
            )
        )
        self.settle()

    def settle(self) -> None:
        """A leader takes what is under way to its peers for lost: what it remembers of that would
        make a thousand states of one."""
        for peer, progress in list(self.raft.progress.items()):
            self._step(events.PeerReset(peer))
            progress.asked_from = Index(-1)
            if progress.match_written >= 0:
                progress.answered_next = Index(-1)  # Looked at only where nothing matches.

    # ---- within a round of replication -----------------------------------------------------------

    def hear(self, sender: BrokerId, message: messages.Message, entries: tuple[Entry, ...]) -> None:
        self._step(events.Received(sender, message, False), entries)

    def tell(self, peer: BrokerId) -> None:
        """Send `peer` what it may be sent, in one message."""
        plan = self.raft.plan_append(peer)
        if plan is None:
            return
        assert not isinstance(plan, messages.ResetRequest), "nothing is let go here"
        log = self.raft.log
        request = plan.request(
            log.runs(plan.first_index, plan.last_index),
            log.configurations_between(plan.first_index, plan.last_index),
        )
        entries = tuple(self.entries[plan.first_index : plan.last_index + 1])
        self.raft.mark_sent(peer, plan.last_index)
        self.sent.append((peer, request, entries))

    # ---- performing ------------------------------------------------------------------------------

    def _step(self, event: events.Event, entries: tuple[Entry, ...] = ()) -> None:
        for effect in self.raft.step(event):
            match effect:
                case events.Send():
                    self.sent.append((effect.to, effect.message, ()))
                case events.AppendMarker():
                    assert effect.index == len(self.entries)
                    self.entries.append((effect.epoch, effect.configuration))
                case events.AppendEntries():
                    assert isinstance(event, events.Received)
                    assert isinstance(event.message, messages.AppendRequest)
                    assert effect.first_index == len(self.entries)
                    self.entries += entries[effect.first_index - event.message.prev_index - 1 :]
                case events.TruncateLog():
                    del self.entries[effect.from_index :]
                case events.ResetLog():
                    raise AssertionError("nothing is let go here")
        self._flush()

    def _flush(self) -> None:
        log = self.raft.log
        assert log.last_index == len(self.entries) - 1
        if log.flushed_index < log.last_index:
            self._step(events.LogFlushed(log.last_index, log.generation))


class View(msgspec.Struct, frozen=True):
    """What is looked at of one state. `log`: the epochs of its entries, which name them."""

    epoch: Epoch
    leads: bool
    is_established: bool
    commit: Index
    log: tuple[Epoch, ...]
    configuration: Configuration
    is_configuration_committed: bool


class Replicas:
    """See the module. A state is a number."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self._pickled: list[bytes] = []
        self._numbers: dict[Hashable, int] = {}
        self._steps: dict[Hashable, tuple[int, tuple[Sent, ...]]] = {}

    @property
    def step_count(self) -> int:
        """How many different steps the core has taken."""
        return len(self._steps)

    def add(self, replica: Replica) -> int:
        """The number of this state."""
        sent, replica.sent = replica.sent, []
        key = (replica.self_id, tuple(replica.entries), _freeze_core(replica.raft))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.views)
            self.views.append(_view(replica))
            self._pickled.append(pickle.dumps(replica, pickle.HIGHEST_PROTOCOL))
        replica.sent = sent
        return number

    def step(
        self, number: int, what: Callable[..., None], *arguments: Hashable
    ) -> tuple[int, tuple[Sent, ...]]:
        """The state after `what` (a method of `Replica`) was done, and what was sent."""
        key = (number, what.__name__, arguments)
        known = self._steps.get(key)
        if known is None:
            replica = pickle.loads(self._pickled[number])
            getattr(replica, what.__name__)(*arguments)
            known = self._steps[key] = (self.add(replica), tuple(replica.sent))
        return known


def _view(replica: Replica) -> View:
    raft = replica.raft
    return View(
        epoch=raft.epoch,
        leads=raft.is_leader,
        is_established=raft.may_serve,
        commit=raft.commit,
        log=tuple(epoch for epoch, _ in replica.entries),
        configuration=raft.configuration,
        is_configuration_committed=raft.configuration_index <= raft.commit,
    )


def _freeze_core(raft: Raft) -> Hashable:
    parts = [raft._state, raft._membership, raft._appends, raft._orders._elections]
    return tuple(_freeze(part) for part in parts)


def _freeze(value: Any) -> Hashable:
    if value is None or isinstance(value, int | Enum | msgspec.Struct):
        return value  # type: ignore[no-any-return]
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, dict):
        return tuple(sorted((key, _freeze(one)) for key, one in value.items()))
    assert type(value).__module__.startswith("strandline.raft."), value
    names = getattr(value, "__slots__", None) or value.__dict__
    return tuple(_freeze(getattr(value, name)) for name in sorted(names) if name not in _DERIVED)
