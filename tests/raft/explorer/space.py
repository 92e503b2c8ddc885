"""All that can happen to one group in a small scope: its states, and the steps between them.

Why:    random schedules are evidence; within its bounds this is everything.
How:    A state is the replicas' states, the messages that may yet arrive, the controller's
        register, what was ever led and acknowledged, and what is left of the budgets. A request for
        a vote, a fence, an appointment or an order to stand arrives at any time or never, and is
        answered at once; a round of replication is one step; of these, so many as the budget says
        leave the request or the answer on its way. So whatever is cut, and for how long, is among
        the schedules. A disk that holds flushes at any time, or loses what it holds in a crash.
        Whom a voter hears is left out: any may grant a vote at any time. Pre-votes are answered by
        all who would ever answer, or by those who grant them. An order to stand reaches anybody.
            The controller takes a majority for the write quorum (`arbiter.register_of`), or what
        was promised and reported; leaders count with `min_insync`, and may lower and raise it.
            A fence or an appointment that can change nothing any more is no part of a state.
Owns:   the states' parts, by number.
Source: design section 6; Lamport, "Specifying Systems" (2002), 14 (explicit-state checking)."""

from collections.abc import Callable, Collection, Hashable, Iterator
from itertools import combinations
from typing import NamedTuple

import msgspec
from tests.raft.explorer.judge import Judge, judge_elections
from tests.raft.explorer.names import Numbered, Renaming, name
from tests.raft.explorer.replicas import ANYBODY, Replica, Replicas, View
from tests.raft.explorer.scope import (
    BUDGETS,
    CHANGES,
    GRANTS,
    HOLDS,
    LATE,
    LOWERS,
    PROPOSALS,
    RESTARTS,
    TIMEOUTS,
    WITHHELD,
    Kind,
    Scope,
)

from strandline.controller.arbitration.arbiter import GroupVoters
from strandline.model.ids import BrokerId, Epoch, grant_of
from strandline.raft import messages
from strandline.raft.group.configuration import Configuration, promised_quorum_of

ARBITER = BrokerId(0)
ROUNDS_MAX = 6

What = Callable[..., None]
"""A method of `Replica`."""
Answer = tuple[BrokerId, messages.Fenced]
Withheld = tuple[int, Configuration]
"""A grant, and what was granted a leader of it, and perhaps never begun."""
Step = tuple[Hashable, ...]
"""Its kind, and what else there is to say."""


class State(NamedTuple):
    """See the module; values are numbers of `Numbered`."""

    replicas: tuple[int, ...]
    flying: frozenset[int]
    register: int
    answers: frozenset[Answer]
    led: int
    acknowledged: int
    left: tuple[int, ...]
    withheld: int
    lost: int = 0
    """Who was declared lost: of `declaring`."""


class Outcome(NamedTuple):
    """How a round of replication may go: what is to be judged of it, and what is on its way."""

    kind: Kind
    leader: int
    peer: int
    judged: tuple[tuple[BrokerId, int, int], ...]
    flying: tuple[int, ...]


class Space:
    """See the module. Subclasses break a rule each."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.replicas = Replicas()
        self.flying = self.replicas.flying
        self.registers: Numbered[GroupVoters] = Numbered()
        self.answers: Numbered[frozenset[Answer]] = Numbered()
        self.withheld: Numbered[frozenset[Withheld]] = Numbered()
        self.judge = Judge()
        self.ids = [name(one) for one in range(1, scope.voters + scope.observers + 1)]
        voters, observers = tuple(self.ids[: scope.voters]), tuple(self.ids[scope.voters :])
        floor = scope.min_insync if scope.promised else msgspec.UNSET
        base = Configuration(voters, (), observers, scope.min_insync, floor=floor)
        stable = base if scope.promised else self.counted(base)
        self.initial = State(
            replicas=self.replicas.begin(tuple(self.ids), base),
            flying=frozenset(),
            register=self.registers.of(GroupVoters(stable)),
            answers=frozenset(),
            led=self.judge.led.of(frozenset()),
            acknowledged=self.judge.acknowledged.of(frozenset()),
            left=tuple(getattr(scope, budget) for budget in BUDGETS),
            withheld=self.withheld.of(frozenset()),
        )
        self._rounds: dict[tuple[int, int], list[Outcome]] = {}

    # ---- what can happen -------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[tuple[Step, State]]:
        """Every step from here. Raises AssertionError where a property does not hold."""
        for number in state.flying:
            yield from self._arrive(state, number)
        for one in self.ids:
            yield from self._replica_steps(state, one)
        yield from self._arbiter_steps(state)

    def check(self, state: State) -> None:
        """What must hold of a state by itself; raises AssertionError."""
        if not self.scope.grants:
            views = self.replicas.views
            by_name = {one: views[state.replicas[one - 1]] for one in self.ids}
            judge_elections(by_name, self.scope.voters)

    def view(self, state: State, one: BrokerId) -> View:
        """What is looked at of one replica."""
        return self.replicas.views[state.replicas[one - 1]]

    def describe(self, step: Step) -> str:
        """In words."""
        kind, *details = step
        if details and kind in (Kind.VOTE, Kind.LATE, Kind.FENCE, Kind.APPOINT, Kind.ORDERED):
            sender, _, message, _ = self.flying.values[int(str(details[-1]))]
            details[-1] = f"{sender}'s {message}"
        return " ".join(map(str, (kind, *details)))

    def _arrive(self, state: State, number: int) -> Iterator[tuple[Step, State]]:
        sender, to, message, _ = self.flying.values[number]
        before = state._replace(flying=state.flying - {number})
        if to == ANYBODY:
            for one in self.ids:
                if one != sender:
                    after, sent = self._step(before, one, Replica.receive, number)
                    yield (Kind.ORDERED, one, number), self._fly(after, sent)
            return
        after, sent = self._step(before, to, Replica.receive, number)
        if isinstance(message, messages.Fence):
            yield from self._fenced(state, after, to, number, sent)
        elif isinstance(message, messages.Appoint):
            if state.left[RESTARTS] and self.view(after, to).leads:
                after = after._replace(flying=state.flying)  # It may come again.
            yield (Kind.APPOINT, to, number), self._fly(after, sent)
        else:
            kind = Kind.VOTE if isinstance(message, messages.VoteRequest) else Kind.LATE
            yield from self._answered(after, sent, (kind, to, number))

    def _fenced(
        self, before: State, after: State, to: BrokerId, number: int, sent: tuple[int, ...]
    ) -> Iterator[tuple[Step, State]]:
        if before.left[LATE] and after.replicas != before.replicas:
            yield (Kind.CUT_BACK, to, number), _less(after, LATE)._replace(flying=before.flying)
        register = self.registers.values[after.register]
        for each in sent:
            answer = self.flying.values[each][2]
            assert isinstance(answer, messages.Fenced)
            if answer.epoch == register.epoch and not register.is_appointed:
                after = after._replace(answers=after.answers | {(to, answer)})
        yield (Kind.FENCE, to, number), after

    def _answered(
        self, state: State, sent: tuple[int, ...], step: Step
    ) -> Iterator[tuple[Step, State]]:
        """What was sent reaches those whom it is for at once; or late."""
        if sent and state.left[LATE]:
            yield (Kind.CUT_BACK, *step), self._fly(_less(state, LATE), sent)
        for each in sent:
            to = self.flying.values[each][1]
            if to == ANYBODY:
                state = self._fly(state, (each,))
            else:
                state, further = self._step(state, to, Replica.receive, each)
                state = self._fly(state, further)
        yield step, state

    def _replica_steps(self, state: State, one: BrokerId) -> Iterator[tuple[Step, State]]:
        view = self.view(state, one)
        left = state.left
        if left[RESTARTS]:
            has_lost = view.flushed_count < len(view.log)
            after = _less(self._do(state, one, Replica.restart), RESTARTS)
            yield (Kind.CRASH if has_lost else Kind.RESTART, one), after
        if view.is_held:
            after, sent = self._step(state, one, Replica.flush)
            yield from self._answered(after, sent, (Kind.FLUSH, one))
        elif left[HOLDS]:
            yield (Kind.HOLD, one), _less(self._do(state, one, Replica.hold), HOLDS)
        if view.leads:
            yield from self._leader_steps(state, one, view)
        elif left[TIMEOUTS] and view.may_stand:
            yield from self._stand(_less(state, TIMEOUTS), one)

    def _leader_steps(
        self, state: State, one: BrokerId, view: View
    ) -> Iterator[tuple[Step, State]]:
        left = state.left
        if left[PROPOSALS]:
            yield (Kind.PROPOSE, one), _less(self._do(state, one, Replica.propose), PROPOSALS)
        for peer in view.configuration.members:
            if peer != one:
                yield from self._round(state, one, peer)
        if left[LOWERS]:
            yield from self._resize(state, one, view)
        present = view.configuration
        register = self.registers.values[state.register]
        if self.may_report(view):
            reported = self.report(register, view)
            if reported is not None:
                after = state._replace(register=self.registers.of(reported))
                yield (Kind.REPORT, one, present.version), after
        if is_settled(view):
            yield from self._changes(state, one, view)

    def _resize(self, state: State, one: BrokerId, view: View) -> Iterator[tuple[Step, State]]:
        present = view.configuration.min_insync
        wanted, kind = (1, Kind.LOWER) if present > 1 else (self.scope.min_insync, Kind.RAISE)
        after = self._do(_less(state, LOWERS), one, Replica.resize, wanted)
        if after.replicas != state.replicas:
            yield (kind, one), after
        if self.scope.promises and present > 1 and not view.configuration.is_joint:
            yield from self._promise(state, one, view)

    def _promise(self, state: State, leader: BrokerId, view: View) -> Iterator[tuple[Step, State]]:
        """Have the voters granted anew, with a floor of the write quorum or without."""
        before, present = self.registers.values[state.register], view.configuration
        has_floor = present.floor is not msgspec.UNSET
        wanted = msgspec.structs.replace(
            present,
            version=(before.version if self.scope.withheld else present.version) + 1,
            min_insync=1 if has_floor else present.min_insync,
            floor=msgspec.UNSET if has_floor else present.min_insync,
        )
        register = self.request(before, view.epoch, self.counted(wanted))
        if register is None:
            return
        asked = state._replace(register=self.registers.of(register))
        after = self._do(_less(asked, LOWERS), leader, Replica.change, wanted)
        if after.replicas != state.replicas:
            yield (Kind.WITHDRAW if has_floor else Kind.PROMISE, leader), after
        if state.left[WITHHELD]:
            known = self.withheld.values[state.withheld] | {(grant_of(view.epoch), wanted)}
            after = _less(asked, WITHHELD)._replace(withheld=self.withheld.of(known))
            yield (Kind.WITHHOLD, wanted.voters, "to", leader), after

    def _changes(self, state: State, leader: BrokerId, view: View) -> Iterator[tuple[Step, State]]:
        withheld = self.withheld.values[state.withheld]
        for grant, wanted in withheld:
            if grant == grant_of(view.epoch):
                after = self._do(state, leader, Replica.change, wanted)
                if after.replicas != state.replicas:
                    yield (Kind.BEGIN, wanted.voters, "by", leader), after
        if not state.left[CHANGES] and not state.left[WITHHELD]:
            return
        for others in ((), *self._chosen()) if withheld else self._chosen():
            voters = {*view.configuration.voters}.symmetric_difference(others)
            if voters:
                yield from self._change(state, leader, view, voters)

    def _change(
        self, state: State, leader: BrokerId, view: View, voters: set[BrokerId]
    ) -> Iterator[tuple[Step, State]]:
        """The leader asks for these, and goes to them at once, or not."""
        before, present = self.registers.values[state.register], view.configuration
        withheld = self.withheld.values[state.withheld]
        version = before.version if withheld else present.version
        wanted = self._configuration(voters, version + 1, present.min_insync)
        register = self.request(before, view.epoch, self.counted(wanted))
        if register is None:
            return
        asked = state._replace(register=self.registers.of(register))
        if state.left[CHANGES]:
            after = self._do(_less(asked, CHANGES), leader, Replica.change, wanted)
            others = voters.symmetric_difference(present.voters)
            yield (self._kind_of_change(others, present), *sorted(others), "by", leader), after
        if state.left[WITHHELD]:
            known = self.withheld.of(withheld | {(grant_of(view.epoch), wanted)})
            after = _less(asked, WITHHELD)._replace(withheld=known)
            yield (Kind.WITHHOLD, wanted.voters, "to", leader), after

    def _chosen(self) -> Iterator[tuple[BrokerId, ...]]:
        """Who comes or goes in one change."""
        for count in range(1, self.scope.together + 1):
            yield from combinations(self.ids, count)

    def _kind_of_change(self, others: set[BrokerId], present: Configuration) -> Kind:
        if not others:
            return Kind.KEEP
        going = others.intersection(present.voters)
        are_placed = {one <= self.scope.voters for one in others}
        if (going and going != others) or len(are_placed) > 1:
            return Kind.EXCHANGE
        if going:
            return Kind.SHRINK if are_placed == {True} else Kind.DEMOTE
        return Kind.RETURN if are_placed == {True} else Kind.PROMOTE

    def _arbiter_steps(self, state: State) -> Iterator[tuple[Step, State]]:
        register = self.registers.values[state.register]
        if state.left[GRANTS]:
            begun = register.begin()
            fences = {
                self.flying.of((ARBITER, one, messages.Fence(begun.epoch), ()))
                for one in self._fenced_by(register)
            }
            after = state._replace(
                register=self.registers.of(begun),
                answers=frozenset(),
                flying=state.flying | fences,
            )
            yield (Kind.GRANT, begun.grant), _less(after, GRANTS)
        answers = dict(sorted(state.answers, key=_member))
        for leader in self.choose(register, answers):
            others = [one for one in answers if one != leader]
            for voters in {(leader,), *((leader, one) for one in others), (leader, *others)}:
                successor = self._configuration(voters, 0, self.scope.min_insync)
                counted = self.counted(successor)
                appointed, message = self.appoint(register, leader, answers[leader], counted)
                granted = msgspec.structs.replace(successor, version=message.configuration.version)
                message = msgspec.structs.replace(message, configuration=granted)
                after = state._replace(
                    register=self.registers.of(appointed),
                    answers=frozenset(),
                    flying=state.flying | {self.flying.of((ARBITER, leader, message, ()))},
                )
                yield (Kind.CHOOSE, leader, "with", voters), after

    def _fenced_by(self, register: GroupVoters) -> Collection[BrokerId]:
        if self.scope.appoints_observers:
            return self.ids
        return {one for each in register.possible for one in each.voters}

    def _configuration(
        self, chosen: Collection[BrokerId], version: int, min_insync: int
    ) -> Configuration:
        voters = tuple(one for one in self.ids if one in chosen)
        observers = tuple(one for one in self.ids if one not in chosen)
        return Configuration(voters, (), observers, min_insync, version)

    # ---- rules, for those who break them ---------------------------------------------------------

    def request(
        self, register: GroupVoters, epoch: Epoch, wanted: Configuration
    ) -> GroupVoters | None:
        """R2."""
        is_more = self.scope.withheld > 0 and bool(register.granted)
        return register.request(epoch, wanted, supersedes=is_more)

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        """R3 and R4: who may be appointed; all whose logs are as good as the best."""
        return register.candidates(answers)

    def appoint(
        self,
        register: GroupVoters,
        leader: BrokerId,
        answer: messages.Fenced,
        successor: Configuration,
    ) -> tuple[GroupVoters, messages.Appoint]:
        """R3."""
        return register.appoint(leader, answer, successor)

    def may_report(self, view: View) -> bool:
        """R6."""
        return is_settled(view)

    def report(self, register: GroupVoters, view: View) -> GroupVoters | None:
        """R6, with the floor of what is reported."""
        present = view.configuration
        return register.report(view.epoch, present.version, promised_quorum_of(present.floor))

    def counted(self, configuration: Configuration) -> Configuration:
        """As the controller counts what was not reported: it takes a majority for W."""
        return msgspec.structs.replace(configuration, min_insync=1, floor=msgspec.UNSET)

    # ---- doing it --------------------------------------------------------------------------------

    def _do(self, state: State, one: BrokerId, what: What, *arguments: Hashable) -> State:
        """One replica takes a step; what it sends may arrive."""
        after, sent = self._step(state, one, what, *arguments)
        return self._fly(after, sent)

    @staticmethod
    def _fly(state: State, sent: tuple[int, ...]) -> State:
        return state._replace(flying=state.flying.union(sent)) if sent else state

    def _step(
        self, state: State, one: BrokerId, what: What, *arguments: Hashable
    ) -> tuple[State, tuple[int, ...]]:
        before = state.replicas[one - 1]
        number, sent = self.replicas.step(before, what, *arguments)
        if number == before:
            return state, sent
        replicas = (*state.replicas[: one - 1], number, *state.replicas[one:])
        return self._judged(state._replace(replicas=replicas), one, before, number), sent

    def _judged(self, state: State, one: BrokerId, before: int, after: int) -> State:
        """The state, with what this replica has just come to lead or to acknowledge. Raises
        AssertionError, by the name of a property."""
        was, now = self.replicas.views[before], self.replicas.views[after]
        if not self.judge.is_concerned(was, now):
            return state
        led, acknowledged = self.judge.judge(state.led, state.acknowledged, one, was, now)
        return state._replace(led=led, acknowledged=acknowledged)

    def _stand(self, state: State, one: BrokerId) -> Iterator[tuple[Step, State]]:
        """Pre-votes are asked for, and granted at once by all who would; who refuses is heard
        first, or not at all."""
        others = (self.view(state, other) for other in self.ids if other != one)
        is_beside = any(other.leads or other.stands for other in others)
        kind = Kind.STAND_BESIDE if is_beside else Kind.STAND
        asking, sent = self._step(state, one, Replica.time_out)
        requests = [each for each in sent if self._is_pre(each)]
        begun = self._fly(asking, tuple(each for each in sent if each not in requests))
        answers: list[int] = []
        for each in requests:
            begun, sent = self._step(begun, self.flying.values[each][1], Replica.receive, each)
            answers += sent
        refusals = [each for each in answers if not self._is_granted(each)]
        grants = [each for each in answers if self._is_granted(each)]
        for heard in (grants, [*refusals, *grants]) if refusals else (grants,):
            after = begun
            for each in heard:
                after = self._do(after, one, Replica.receive, each)
            yield (kind, one), self._do(after, one, Replica.give_up)

    def _is_pre(self, number: int) -> bool:
        message = self.flying.values[number][2]
        return isinstance(message, messages.VoteRequest) and message.pre

    def _is_granted(self, number: int) -> bool:
        message = self.flying.values[number][2]
        return isinstance(message, messages.VoteResponse) and message.granted

    def _round(
        self, state: State, leader: BrokerId, peer: BrokerId
    ) -> Iterator[tuple[Step, State]]:
        """Replicate to one peer until nothing is left to be sent."""
        key = state.replicas[leader - 1], state.replicas[peer - 1]
        outcomes = self._rounds.get(key)
        if outcomes is None:
            outcomes = [
                one
                for one in self._outcomes(leader, peer, *key)
                if (one.leader, one.peer) != key or one.flying
            ]
            self._rounds[key] = outcomes
        for outcome in outcomes:
            after = state
            if outcome.kind != Kind.REPLICATE:
                if not state.left[LATE]:
                    continue
                after = _less(after, LATE)
            replicas = list(after.replicas)
            replicas[leader - 1], replicas[peer - 1] = outcome.leader, outcome.peer
            after = self._fly(after._replace(replicas=tuple(replicas)), outcome.flying)
            for each in outcome.judged:
                after = self._judged(after, *each)
            yield (outcome.kind, leader, peer), after

    def _outcomes(
        self, leader: BrokerId, peer: BrokerId, leading: int, following: int
    ) -> Iterator[Outcome]:
        step, views = self.replicas.step, self.replicas.views
        judged: list[tuple[BrokerId, int, int]] = []
        flying: tuple[int, ...] = ()

        def outcome(kind: Kind, late: tuple[int, ...] = ()) -> Outcome:
            settled, _ = step(leading, Replica.settle)
            return Outcome(kind, settled, following, tuple(judged), flying + late)

        leading, sent = step(leading, Replica.tell, peer)
        for _ in range(ROUNDS_MAX):
            if not sent:
                break
            (request,) = sent
            has_entries = bool(self.flying.values[request][3])
            if has_entries:
                yield outcome(Kind.CUT_THERE, sent)
            following, answers = step(following, Replica.receive, request)
            if has_entries and answers:
                yield outcome(Kind.CUT_BACK, answers)
            for answer in answers:
                before = leading
                leading, further = step(before, Replica.hear, answer)
                flying += further
                if self.judge.is_concerned(views[before], views[leading]):
                    judged.append((leader, before, leading))
            if not views[leading].leads:
                break
            leading, sent = step(leading, Replica.tell, peer)
        yield outcome(Kind.REPLICATE)

    # ---- which states are one --------------------------------------------------------------------

    def pruned(self, state: State) -> State:
        """Without fences and appointments that can change nothing any more."""
        dead = [each for each in state.flying if self._is_dead(state, each)]
        return state._replace(flying=state.flying.difference(dead)) if dead else state

    def _is_dead(self, state: State, number: int) -> bool:
        sender, to, message, _ = self.flying.values[number]
        if sender != ARBITER:
            return False
        view = self.view(state, to)
        if isinstance(message, messages.Appoint):
            # The vote of an epoch is durable, and so is the epoch.
            return view.epoch > message.epoch or (view.epoch == message.epoch and view.has_voted)
        assert isinstance(message, messages.Fence)
        register = self.registers.values[state.register]
        is_answer_wanted = register.epoch == message.epoch and not register.is_appointed
        return view.epoch > message.epoch or (view.epoch == message.epoch and not is_answer_wanted)

    def colours(self, state: State) -> tuple[int, ...]:
        """Of each member: equal where they may be alike, and the same under all names."""
        colours = self.replicas.colours
        result = [colours[one] << 8 for one in state.replicas]
        values = self.flying.values
        for each in state.flying:
            sender, to, _, _ = values[each]
            if to > 0:
                result[to - 1] += 1 + 8 * (sender == ARBITER)
            if sender > 0:
                result[sender - 1] += 64
        for one, _ in state.answers:
            result[one - 1] += 128
        return tuple(result)

    def renamed(self, state: State, renaming: Renaming) -> State:
        """The same state under other names."""
        replicas = list(state.replicas)
        for old, new in enumerate(renaming):
            replicas[new - 1] = self.replicas.renamed(state.replicas[old], renaming)
        rename = self.flying.renamed
        return State(
            replicas=tuple(replicas),
            flying=frozenset([rename(each, renaming) for each in state.flying]),
            register=self.registers.renamed(state.register, renaming),
            answers=frozenset([(renaming[one - 1], each) for one, each in state.answers]),
            led=self.judge.renamed(state.led, renaming),
            acknowledged=state.acknowledged,
            left=state.left,
            withheld=self.withheld.renamed(state.withheld, renaming),
        )


def _member(answer: Answer) -> BrokerId:
    return answer[0]


def is_settled(view: View) -> bool:
    """Whether a leader has committed, in its own epoch, past a configuration that is final."""
    return (
        not view.configuration.is_joint and view.is_established and view.is_configuration_committed
    )


def _less(state: State, budget: int) -> State:
    left = state.left
    return state._replace(left=(*left[:budget], left[budget] - 1, *left[budget + 1 :]))
