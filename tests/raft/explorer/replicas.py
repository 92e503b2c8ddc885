"""Replicas as values: every state of one is met once, every step of one is taken once.

Why:    millions of states of a group are made of a few thousand states of its replicas; the real
        core is stepped for these only.
How:    a replica is the core and its log. Its state is frozen into a key, and kept pickled; a step
        is looked up by (state, what was done). What is written is durable at once, unless the disk
        was told to hold: then it is when it flushes, and a restart before loses it.
Owns:   all states, all steps, all messages."""

from collections.abc import Callable, Hashable
from enum import Enum
from operator import attrgetter
from typing import Any

import msgspec
from tests.raft.explorer.names import Name, Numbered, Renaming, pack, unpack

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, Offset
from strandline.raft import events, messages
from strandline.raft.core import Raft
from strandline.raft.group.configuration import Configuration, promised_quorum_of
from strandline.raft.group.log_shape import LogShape
from strandline.raft.transitions import Role

Entry = tuple[Epoch, Configuration | None]
Sent = tuple[BrokerId, messages.Message, tuple[Entry, ...]]
"""To whom, what, and the entries that travel beside it."""
Flying = tuple[BrokerId, BrokerId, messages.Message, tuple[Entry, ...]]
"""From, to, what, and the entries beside it."""
ANYBODY = BrokerId(-2)
"""Whom a leader that leaves tells to stand is a choice among equals, which names would decide."""

_DERIVED = frozenset(
    {
        "effects",
        "wake",
        "ready",
        "generation",
        "_state",
        "_membership",
        "_leading",
        "everybody",
        "quorums",
    }
)


class Replica:
    """One replica, with a driver that does at once what is asked of it."""

    def __init__(self, self_id: BrokerId, base: Configuration) -> None:
        self.self_id = self_id
        self.base = base
        self.entries: list[Entry] = []
        # What is written is not flushed.
        self.is_held = False
        self.raft = self._core(Epoch(0), BrokerId(-1))
        self.sent: list[Sent] = []

    def _core(self, epoch: Epoch, vote: BrokerId, *, lost_state: bool = False) -> Raft:
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
            lost_state=lost_state,
        )

    # ---- what may be done to it ------------------------------------------------------------------

    def time_out(self) -> None:
        self._step(events.ElectionTimedOut())
        self.settle()

    def give_up(self) -> None:
        """Nobody answers any more whether an election would be won."""
        state = self.raft.state
        if state.role == Role.PRECANDIDATE:
            state.role = Role.FOLLOWER

    def hold(self) -> None:
        """The disk is slow from now on."""
        self.is_held = True

    def flush(self) -> None:
        """The disk is done with all that was written."""
        self.is_held = False
        self._flush()
        self.settle()

    def restart(self) -> None:
        """What was not flushed is lost."""
        del self.entries[self.raft.log.flushed_index + 1 :]
        self.is_held = False
        self.raft = self._core(self.raft.epoch, self.raft.vote)

    def lose_state(self, epoch: Epoch) -> None:
        """Begin anew in `epoch`, with an empty log that proves nothing."""
        self._begin_anew(epoch, lost_state=True)

    def be_new(self, epoch: Epoch) -> None:
        """Begin anew in `epoch`, with an empty log, as a replica that was never here."""
        self._begin_anew(epoch, lost_state=False)

    def _begin_anew(self, epoch: Epoch, *, lost_state: bool) -> None:
        self.entries = []
        self.is_held = False
        self.raft = self._core(epoch, NO_BROKER, lost_state=lost_state)

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
                wanted.voters, wanted.observers, wanted.min_insync, wanted.version, wanted.floor
            )
        )
        self.settle()

    def resize(self, min_insync: int) -> None:
        """Make the write quorum another one."""
        present = self.raft.configuration
        self._step(
            events.ChangeConfiguration(
                present.voters, present.observers, min_insync, present.version
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
        self.raft.note_sent(peer, plan.last_index)
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
        if not self.is_held and log.flushed_index < log.last_index:
            self._step(events.LogFlushed(log.last_index, log.generation))


class View(msgspec.Struct, frozen=True):
    """What is looked at of one state. `log`: the epochs of its entries, which name them."""

    epoch: Epoch
    leads: bool
    stands: bool
    may_stand: bool
    has_lost_state: bool
    is_established: bool
    has_voted: bool
    is_held: bool
    flushed_count: int
    commit: Index
    log: tuple[Epoch, ...]
    configuration: Configuration
    is_configuration_committed: bool


class Replicas:
    """See the module. A state is a number, and so is a message."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.flying: Numbered[Flying] = Numbered()
        # One for all states that differ by names only, and perhaps for others.
        self.colours: list[int] = []
        self._colours: dict[Hashable, int] = {}
        # What is packed, and the names under which it is that state.
        self._packed: list[tuple[bytes, Renaming]] = []
        self._numbers: dict[Hashable, int] = {}
        self._steps: dict[Hashable, tuple[int, tuple[int, ...]]] = {}
        self._renamed: dict[tuple[int, Renaming], int] = {}
        self._same: Renaming = ()

    @property
    def step_count(self) -> int:
        """How many different steps the core has taken."""
        return len(self._steps)

    def begin(self, names: Renaming, base: Configuration) -> tuple[int, ...]:
        """All members, new."""
        self._same = names
        return tuple(self._add(Replica(one, base)) for one in names)

    def step(
        self, number: int, what: Callable[..., None], *arguments: Hashable
    ) -> tuple[int, tuple[int, ...]]:
        """The state after `what` (a method of `Replica`) was done, and what was sent."""
        key = (number, what.__name__, arguments)
        known = self._steps.get(key)
        if known is None:
            replica = unpack(*self._packed[number])
            if what is Replica.receive or what is Replica.hear:
                (message,) = arguments
                assert isinstance(message, int)
                sender, _, *rest = self.flying.values[message]
                getattr(replica, what.__name__)(sender, *rest)
            else:
                getattr(replica, what.__name__)(*arguments)
            sent, replica.sent = replica.sent, []
            known = self._steps[key] = (
                self._add(replica),
                tuple(self._fly(replica.self_id, *one) for one in sent),
            )
        return known

    def renamed(self, number: int, renaming: Renaming) -> int:
        """The same state under other names."""
        key = number, renaming
        after = self._renamed.get(key)
        if after is None:
            packed, names = self._packed[number]
            names = tuple(renaming[one - 1] for one in names)
            after = self._add(unpack(packed, names), (packed, names))
            self._renamed[key] = after
        return after

    def _fly(
        self,
        sender: BrokerId,
        to: BrokerId,
        message: messages.Message,
        entries: tuple[Entry, ...],
    ) -> int:
        if isinstance(message, messages.TimeoutNow):
            to = ANYBODY
        return self.flying.of((sender, to, message, entries))

    def _add(self, replica: Replica, packed: tuple[bytes, Renaming] | None = None) -> int:
        raft = replica.raft
        raft.state.effects = []
        key = (replica.self_id, replica.is_held, tuple(replica.entries), _freeze_core(raft))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.views)
            view = _view(replica)
            self.views.append(view)
            self._packed.append(packed or (pack(replica), self._same))
            colour = _nameless(replica, view)
            self.colours.append(self._colours.setdefault(colour, len(self._colours)))
        return number


def _view(replica: Replica) -> View:
    raft = replica.raft
    return View(
        epoch=raft.epoch,
        leads=raft.is_leader,
        stands=raft.role == Role.CANDIDATE,
        may_stand=raft._membership.may_campaign,
        has_lost_state=raft.has_lost_state,
        is_established=raft.may_serve,
        has_voted=raft.vote != NO_BROKER,
        is_held=replica.is_held,
        flushed_count=raft.log.flushed_index + 1,
        commit=raft.commit,
        log=tuple(epoch for epoch, _ in replica.entries),
        configuration=raft.configuration,
        is_configuration_committed=raft.configuration_index <= raft.commit,
    )


def _nameless(replica: Replica, view: View) -> Hashable:
    """What a state is, whatever the names are."""
    raft, own = replica.raft, replica.self_id
    configuration = view.configuration
    return (
        view.epoch,
        raft.role,
        view.is_held,
        view.flushed_count,
        view.commit,
        view.log,
        (raft.vote == own, view.has_voted),
        (raft.leader == own, raft.leader == NO_BROKER),
        own in configuration.voters,
        own in configuration.old_voters,
        len(configuration.voters),
        len(configuration.old_voters),
        configuration.version,
        configuration.min_insync,
        promised_quorum_of(configuration.floor),
        tuple(sorted(one.match_flushed for one in raft.progress.values())),
    )


def _freeze_core(raft: Raft) -> Hashable:
    parts = [raft.state, raft._membership, raft._appends]
    if raft.role in (Role.PRECANDIDATE, Role.CANDIDATE):
        parts.append(
            raft._transfer_requests._elections
        )  # Of others, votes of a candidacy that is over.
    return tuple(_freeze(part) for part in parts)


def _freeze(value: Any) -> Hashable:
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if kind is list or kind is tuple:
        return tuple([one if type(one) in _PLAIN else _freeze(one) for one in value])
    if isinstance(value, int | Enum | msgspec.Struct):
        return value
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, dict):
        return tuple(sorted((key, _freeze(one)) for key, one in value.items()))
    parts = _parts_of(kind, value)(value)
    return tuple([one if type(one) in _PLAIN else _freeze(one) for one in parts])


_PLAIN = frozenset({int, bool, Name, type(None), Role, Configuration})
_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def _parts_of(kind: type, value: Any) -> Callable[[Any], tuple[Any, ...]]:
    getter = _getters.get(kind)
    if getter is None:
        assert kind.__module__.startswith("strandline.raft."), value
        names = getattr(value, "__slots__", None) or value.__dict__
        chosen = [name for name in sorted(names) if name not in _DERIVED]
        assert len(chosen) > 1, "one attribute is got bare"
        getter = _getters[kind] = attrgetter(*chosen)
    return getter
