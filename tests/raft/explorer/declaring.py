"""The same with a step more: some replicas are declared lost, and come back whenever they like.

Why:    the one promise that a declaration takes back is that of the records at risk; everything
        else has to hold in every schedule.
How:    a declaration is decided as the controller does, on the states as they are; those who are
        given up are stopped: they take no step, what was sent to them is gone, and what they have
        sent may arrive. Each may come back, at any time after it: as one that has lost its log, and
        lives in no epoch before the grant. What was acknowledged counts on as far as the log has it
        that was chosen; that it has all that a survivor knows to be committed is checked there, of
        observers, too, which are fenced and waited for as voters are. Of logs that are equally good
        any may be chosen, but a voter's before an observer's: the controller takes the first, which
        names would decide. Any of those who are left may vote in the successor.
Owns:   who is stopped, and what was declared last: renamed as all else.
Source: decisions 0026 and 0027; `controller.decide.declared_losses`, `controller.decide.grants`."""

from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from tests.raft.explorer.names import Numbered, Renaming
from tests.raft.explorer.replicas import Replica
from tests.raft.explorer.scope import DECLARES, LATE, Kind, Scope
from tests.raft.explorer.space import ARBITER, Space, State, Step, What, _less

from strandline.controller.arbitration.arbiter import GroupVoters
from strandline.controller.arbitration.survivors import GroupStatus, SurvivingLog, assess
from strandline.model.ids import BrokerId, Epoch, Index, first_epoch
from strandline.raft import messages

End = tuple[Epoch, Index]


class Lost(NamedTuple):
    """Who is stopped, and the last declaration: its grant, and the logs that were shown."""

    stopped: frozenset[BrokerId] = frozenset()
    grant: int = 0
    leader: BrokerId = ARBITER
    ends: frozenset[tuple[BrokerId, End]] = frozenset()


class Declaring(Space):
    """See the module."""

    def __init__(self, scope: Scope) -> None:
        assert not scope.restarts, "a restart would forget that a log proves nothing"
        super().__init__(scope)
        self.lost: Numbered[Lost] = Numbered()
        self.initial = self.initial._replace(lost=self.lost.of(Lost()))
        self._last = Lost()

    def check(self, state: State) -> None:
        """Somebody may lead, as long as nobody was given up."""
        if not self.lost.values[state.lost].grant:
            super().check(state)

    # ---- what can happen -------------------------------------------------------------------------

    def _replica_steps(self, state: State, one: BrokerId) -> Iterator[tuple[Step, State]]:
        lost = self.lost.values[state.lost]
        if one not in lost.stopped:
            yield from super()._replica_steps(state, one)
            return
        alive = lost._replace(stopped=lost.stopped - {one})
        epoch = self.registers.values[state.register].epoch
        after = state._replace(lost=self.lost.of(alive))
        yield (Kind.COME_BACK, one), self.come_back(after, one, epoch)

    def _arbiter_steps(self, state: State) -> Iterator[tuple[Step, State]]:
        self._last = self.lost.values[state.lost]
        yield from super()._arbiter_steps(state)
        if state.left[DECLARES]:
            for count in range(1, len(self.ids)):
                for lost in combinations(self.ids, count):
                    yield from self._declare(_less(state, DECLARES), lost)

    def _declare(self, state: State, lost: tuple[BrokerId, ...]) -> Iterator[tuple[Step, State]]:
        register = self.registers.values[state.register]
        stopped = self.lost.values[state.lost].stopped.union(lost)
        logs = {one: self._log(state, one) for one in self.ids if one not in stopped}
        possible = [one.voters for one in register.possible]
        voters = {one for each in possible for one in each}
        found = assess(possible, list(logs.values()), needs_all=register.needs_all)
        if found.standing is not GroupStatus.SHORT:
            return
        if any(one.has_lost for one in logs.values()):
            return
        assert found.best is not None
        best = _end(logs[found.best])
        for leader, known in logs.items():
            if _end(known) == best and (leader in voters) == (found.best in voters):
                log = self._judged_log(state, leader, logs)
                survivors = self.survivors(logs, voters, leader)
                after = self._declared(state, survivors)
                after = after._replace(
                    lost=self.lost.of(
                        Lost(
                            stopped,
                            register.grant + 1,
                            leader,
                            frozenset((one, _end(logs[one])) for one in survivors),
                        )
                    ),
                    flying=frozenset(
                        one for one in after.flying if self.flying.values[one][1] not in lost
                    ),
                    acknowledged=self._kept(state.acknowledged, log),
                )
                kind = Kind.DECLARE if leader in voters else Kind.DECLARE_OBSERVER
                yield (kind, lost, "and chooses", leader), after

    def _declared(self, state: State, survivors: tuple[BrokerId, ...]) -> State:
        register = self.declare(self.registers.values[state.register], survivors)
        fences = {
            self.flying.of((ARBITER, one, messages.Fence(register.epoch), ())) for one in survivors
        }
        return state._replace(
            register=self.registers.of(register),
            answers=frozenset(),
            flying=state.flying | fences,
        )

    def _judged_log(
        self, state: State, leader: BrokerId, logs: dict[BrokerId, SurvivingLog]
    ) -> tuple[Epoch, ...]:
        """The log that goes on; it has all that anybody who is left knows to be committed."""
        log = self.view(state, leader).log
        for one, known in logs.items():
            has = self.view(state, one).log[: known.committed]
            assert log[: known.committed] == has, (
                f"NoAcknowledgedWriteLost: {leader} goes on with {log}, and {one} knows {has} to "
                "be committed"
            )
        return log

    def _kept(self, number: int, log: tuple[Epoch, ...]) -> int:
        """What was acknowledged, as far as it is not given up."""
        kept = set()
        for epoch, committed in self.judge.acknowledged.values[number]:
            count = 0
            while count < min(len(log), len(committed)) and log[count] == committed[count]:
                count += 1
            kept.add((epoch, committed[:count]))
        return self.judge.acknowledged.of(frozenset(kept))

    def _log(self, state: State, one: BrokerId) -> SurvivingLog:
        view = self.view(state, one)
        return SurvivingLog(
            broker=one,
            is_led=False,
            last_epoch=view.log[-1] if view.log else 0,
            last_index=len(view.log) - 1,
            start=0,
            committed=view.commit + 1,
            end=len(view.log),
            has_lost=view.has_lost_state,
            epoch=view.epoch,
        )

    # ---- rules, for those who break them ---------------------------------------------------------

    def survivors(
        self, logs: Collection[BrokerId], voters: Collection[BrokerId], leader: BrokerId
    ) -> tuple[BrokerId, ...]:
        """Rule 1: who is fenced and waited for: all who are left."""
        return tuple(logs)

    def declare(self, register: GroupVoters, survivors: tuple[BrokerId, ...]) -> GroupVoters:
        """Rule 2: nothing but the survivors may be in force."""
        return register.declare(survivors)

    def come_back(self, state: State, one: BrokerId, epoch: Epoch) -> State:
        """Rule 4."""
        return self._do(state, one, Replica.lose_state, epoch)

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        """As `decide.grants`: the log that was shown, until somebody has met its leader."""
        chosen = super().choose(register, answers)
        last = self._last
        if not chosen or not register.needs_all:
            return chosen
        if answers[chosen[0]].last_epoch >= first_epoch(last.grant):
            return chosen
        now = {one: (answers[one].last_epoch, answers[one].last_index) for one, _ in last.ends}
        shown = dict(last.ends)
        has_grown = any(now[one] > shown[one] for one in shown)
        return [] if has_grown or now[last.leader] < shown[last.leader] else [last.leader]

    # ---- doing it --------------------------------------------------------------------------------

    def _step(
        self, state: State, one: BrokerId, what: What, *arguments: Hashable
    ) -> tuple[State, tuple[int, ...]]:
        if one in self.lost.values[state.lost].stopped:
            return state, ()
        return super()._step(state, one, what, *arguments)

    def _round(
        self, state: State, leader: BrokerId, peer: BrokerId
    ) -> Iterator[tuple[Step, State]]:
        if peer not in self.lost.values[state.lost].stopped:
            yield from super()._round(state, leader, peer)
            return
        after, sent = self._step(state, leader, Replica.tell, peer)
        after, _ = self._step(after, leader, Replica.settle)
        if after != state:
            yield (Kind.REPLICATE, leader, peer), after
        if state.left[LATE] and any(self.flying.values[each][3] for each in sent):
            yield (Kind.CUT_THERE, leader, peer), self._fly(_less(after, LATE), sent)

    # ---- which states are one --------------------------------------------------------------------

    def colours(self, state: State) -> tuple[int, ...]:
        """As before; and who is stopped is unlike who is not."""
        lost = self.lost.values[state.lost]
        colours = zip(self.ids, super().colours(state), strict=True)
        return tuple(
            4 * colour + 2 * (one in lost.stopped) + (one == lost.leader) for one, colour in colours
        )

    def renamed(self, state: State, renaming: Renaming) -> State:
        """The same state under other names."""
        lost = self.lost.renamed(state.lost, renaming)
        return super().renamed(state, renaming)._replace(lost=lost)


def _end(log: SurvivingLog) -> End:
    return Epoch(log.last_epoch), Index(log.last_index)


# ---- broken rules --------------------------------------------------------------------------------


class Remembering(Declaring):
    """Rule 4 broken: who comes back goes on with what it had."""

    def come_back(self, state: State, one: BrokerId, epoch: Epoch) -> State:
        return state


class BornBefore(Declaring):
    """Rule 4 broken: who comes back has forgotten the epochs, too, and counts."""

    def come_back(self, state: State, one: BrokerId, epoch: Epoch) -> State:
        return self._do(state, one, Replica.be_new, Epoch(0))


class Unstruck(Declaring):
    """Rule 2 broken: what was in force before the declaration may still be."""

    def declare(self, register: GroupVoters, survivors: tuple[BrokerId, ...]) -> GroupVoters:
        return register.begin()


class Unfenced(Declaring):
    """Rule 1 broken: observers are not waited for, and of who was fenced the best goes on."""

    def declare(self, register: GroupVoters, survivors: tuple[BrokerId, ...]) -> GroupVoters:
        voters = {one for each in register.possible for one in each.voters}
        return register.declare(tuple(one for one in survivors if one in voters) or survivors)

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        return Space.choose(self, register, answers)


class Selective(Declaring):
    """Rule 1 broken: of the observers only who goes on is fenced and waited for."""

    def survivors(
        self, logs: Collection[BrokerId], voters: Collection[BrokerId], leader: BrokerId
    ) -> tuple[BrokerId, ...]:
        return tuple(one for one in logs if one in voters or one == leader)


class Hasty(Declaring):
    """Rule 1 broken: a majority of those who were not given up is enough for an appointment."""

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        return Space.choose(self, replace(register, needs_all=False), answers)
