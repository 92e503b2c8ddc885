"""One core under test, with short words for what is done to it and what it does."""

from typing import TypeVar

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.raft import events, messages
from strandline.raft.core import Raft
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    LeaderContact,
    Run,
    VoteResponse,
)

T = TypeVar("T")


def shape(
    *epochs: int,
    first: int = 0,
    flushed: int | None = None,
    previous: int = 0,
    configurations: tuple[tuple[int, Configuration], ...] = (),
) -> LogShape:
    """The log whose entries have these epochs, one by one."""
    runs: list[tuple[Epoch, Index]] = []
    for at, epoch in enumerate(epochs):
        if not runs or runs[-1][0] != epoch:
            runs.append((Epoch(epoch), Index(first + at)))
    last = first + len(epochs) - 1
    return LogShape(
        first_index=Index(first),
        last_index=Index(last),
        flushed_index=Index(last if flushed is None else flushed),
        previous_epoch=Epoch(previous),
        start_offset=Offset(first),
        epochs=runs,
        configurations=[(Index(index), c) for index, c in configurations],
    )


def epochs_of(log: LogShape) -> list[int]:
    """The reverse of `shape`."""
    return [log.epoch_at(Index(i)) for i in range(log.first_index, log.last_index + 1)]


class Member:
    """See the module. Every call returns the effects of that step."""

    def __init__(
        self,
        self_id: int = 1,
        *,
        log: LogShape | None = None,
        epoch: int | None = None,
        vote: int = -1,
        voters: tuple[int, ...] = (1, 2, 3),
        observers: tuple[int, ...] = (),
        min_insync: int = 1,
        commit: int = -1,
        lost_state: bool = False,
        delegated_epoch: int = 0,
        asks_to_rejoin: bool = False,
        joined: int | None = None,
    ) -> None:
        log = log or shape()
        self.self_id = self_id
        self.raft = Raft(
            group=GroupId(7),
            self_id=BrokerId(self_id),
            log=log,
            epoch=Epoch(log.last_epoch if epoch is None else epoch),
            vote=BrokerId(vote),
            configuration=configuration(voters, observers=observers, min_insync=min_insync),
            commit=Index(commit),
            lost_state=lost_state,
            delegated_epoch=Epoch(delegated_epoch),
            asks_to_rejoin=asks_to_rejoin,
            joined=None if joined is None else Index(joined),
        )

    def step(self, event: events.Event) -> list[events.Effect]:
        return self.raft.step(event)

    def receive(
        self, sender: int, message: messages.Message, *, leader_alive: bool = False
    ) -> list[events.Effect]:
        return self.step(events.Received(BrokerId(sender), message, leader_alive))

    def time_out(self) -> list[events.Effect]:
        return self.step(events.ElectionTimedOut())

    def flush(self) -> list[events.Effect]:
        """Everything written becomes durable."""
        log = self.raft.log
        return self.step(events.LogFlushed(log.last_index, log.generation))

    def lead(self) -> "Member":
        """Win an election with everybody's votes; the marker is not yet flushed."""
        self.time_out()
        for pre in (True, False):
            epoch = Epoch(self.raft.epoch + pre)
            for voter in self.raft.configuration.all_voters:
                if voter != self.self_id and not self.raft.is_leader:
                    self.receive(voter, VoteResponse(epoch, granted=True, pre=pre))
        assert self.raft.is_leader
        return self

    def lead_established(self) -> "Member":
        """Lead, with everything flushed everywhere, and every peer told all."""
        self.lead()
        self.flush()
        for peer in list(self.raft.progress):
            self.hear_all(peer)
        for peer in list(self.raft.progress):
            self.send_all(peer)
        assert self.raft.may_serve
        return self

    def propose(self, count: int = 1, *, unflushed_visible: bool = False) -> list[events.Effect]:
        return self.step(events.Propose(count, unflushed_visible))

    def send_all(self, peer: int) -> AppendRequest | messages.ResetRequest | None:
        """Send what the plan says, to the end of the log."""
        plan = self.raft.plan_append(BrokerId(peer))
        if plan is None:
            return None
        if isinstance(plan, messages.ResetRequest):
            self.raft.note_sent(BrokerId(peer), Index(plan.start_index - 1))
            return plan
        log = self.raft.log
        self.raft.note_sent(BrokerId(peer), plan.last_index)
        return plan.request(
            log.runs(plan.first_index, plan.last_index),
            log.configurations_between(plan.first_index, plan.last_index),
        )

    def hear(self, peer: int, written: int, flushed: int | None = None) -> list[events.Effect]:
        """The peer acknowledges."""
        durable = Index(written if flushed is None else flushed)
        return self.receive(peer, AppendResponse(self.raft.epoch, True, Index(written), durable))

    def hear_all(self, peer: int) -> list[events.Effect]:
        """The peer has the whole log, durably."""
        return self.hear(peer, self.raft.log.last_index)

    def append(
        self, *, prev: tuple[int, int], epochs: tuple[int, ...] = (), epoch: int | None = None,
        sender: int = 2, commit: int = -1, visible: int | None = None, report: bool = False,
    ) -> list[events.Effect]:  # fmt: skip
        """An append from `sender`: entries of these epochs after prev = (index, epoch)."""
        runs: list[Run] = []
        for at, entry in enumerate(epochs):
            run = Run(Epoch(entry), Index(prev[0] + 1 + at))
            if runs and runs[-1].epoch == entry:
                runs[-1] = run
            else:
                runs.append(run)
        return self.receive(
            sender,
            AppendRequest(
                epoch=Epoch(max((*epochs, prev[1])) if epoch is None else epoch),
                prev_index=Index(prev[0]),
                prev_epoch=Epoch(prev[1]),
                commit=Index(commit),
                visible=Index(commit if visible is None else visible),
                runs=tuple(runs),
                report_written=report,
            ),
        )


def target(last_index: int = 4, **options: object) -> Member:
    """A follower of broker 1 in epoch 1, with entries up to `last_index`."""
    member = Member(2, log=shape(*([1] * (last_index + 1))), **options)  # type: ignore[arg-type]
    member.receive(1, LeaderContact(Epoch(1), Index(-1), Index(-1)))
    return member


def configuration(
    voters: tuple[int, ...],
    *,
    old: tuple[int, ...] = (),
    observers: tuple[int, ...] = (),
    min_insync: int = 1,
) -> Configuration:
    """With plain numbers."""
    return Configuration(
        tuple(map(BrokerId, voters)),
        tuple(map(BrokerId, old)),
        tuple(map(BrokerId, observers)),
        min_insync,
    )


def of_type(effects: list[events.Effect], kind: type[T]) -> list[T]:
    """The effects of one kind, in order."""
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(effects: list[events.Effect], kind: type[T]) -> dict[int, T]:
    """{receiver: message} of one kind; at most one to each."""
    result: dict[int, T] = {}
    for effect in of_type(effects, events.Send):
        if isinstance(effect.message, kind):
            assert effect.to not in result
            result[effect.to] = effect.message
    return result


def kinds(effects: list[events.Effect]) -> list[str]:
    """The names of the effects, in order."""
    return [type(effect).__name__ for effect in effects]
