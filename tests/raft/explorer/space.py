"""All that can happen to one group in a small scope: its states, and the steps between them.

Why:    random schedules are evidence; within its bounds this is everything.
How:    breadth first, so that a breach is found by a shortest way. A state is the replicas' states,
        the messages that may yet arrive, the controller's register, what was ever led and
        acknowledged, and what is left of the budgets. A request for a vote or a fence arrives at
        any time or never, and is answered at once; a round of replication is one step; of these,
        so many as the budget says leave the request or the answer on its way. Whom a voter hears
        is left out: any may grant a vote at any time. Pre-votes are answered by all who would ever
        answer. Voters are alike, so that the first to stand is the first of them.
Owns:   the states met; the way to each.
Source: design section 6; Lamport, "Specifying Systems" (2002), 14 (explicit-state checking)."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, dataclass
from typing import Generic, NamedTuple, TypeVar

from tests.raft.explorer.replicas import Entry, Replica, Replicas, Sent

from strandline.controller.arbiter import GroupVoters
from strandline.model.ids import BrokerId, Epoch
from strandline.raft import messages
from strandline.raft.configuration import Configuration

ARBITER = BrokerId(0)
ROUNDS_MAX = 6

T = TypeVar("T")
What = Callable[..., None]
"""A method of `Replica`."""
Flying = tuple[BrokerId, BrokerId, messages.Message, tuple[Entry, ...]]
"""From, to, what, and the entries beside it."""
Led = tuple[Epoch, BrokerId, tuple[Epoch, ...]]
"""An epoch, who leads it, and the log before it."""
Acknowledged = tuple[Epoch, tuple[Epoch, ...]]
"""An epoch, and the log up to the last that was acknowledged in it."""


class BreachError(AssertionError):
    """A property does not hold."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How large a space is. Voters are 1 .. `voters`, observers follow."""

    voters: int = 3
    observers: int = 1
    min_insync: int = 2
    timeouts: int = 1
    proposals: int = 1
    restarts: int = 0
    changes: int = 0
    grants: int = 1
    late: int = 1
    """So many rounds of replication may leave something on its way."""


class State(NamedTuple):
    """See the module; values are numbers of `Numbered`."""

    replicas: tuple[int, ...]
    flying: frozenset[int]
    register: int
    answers: frozenset[tuple[BrokerId, messages.Fenced]]
    led: frozenset[int]
    acknowledged: frozenset[int]
    left: tuple[int, ...]


class Numbered(Generic[T]):
    """Values by number, each once: what is hashed a million times is short."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, value: T) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


BUDGETS = ("timeouts", "proposals", "restarts", "changes", "grants", "late")
TIMEOUTS, PROPOSALS, RESTARTS, CHANGES, GRANTS, LATE = range(len(BUDGETS))


class Space:
    """See the module. Subclasses break a rule each."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.replicas = Replicas()
        self.flying: Numbered[Flying] = Numbered()
        self.registers: Numbered[GroupVoters] = Numbered()
        self.led: Numbered[Led] = Numbered()
        self.acknowledged: Numbered[Acknowledged] = Numbered()
        self.ids = [BrokerId(one) for one in range(1, scope.voters + scope.observers + 1)]
        voters, observers = tuple(self.ids[: scope.voters]), tuple(self.ids[scope.voters :])
        base = Configuration(voters, (), observers, scope.min_insync)
        budgets = asdict(scope)
        self.initial = State(
            replicas=tuple(self.replicas.add(Replica(one, base)) for one in self.ids),
            flying=frozenset(),
            register=self.registers.of(GroupVoters(base)),
            answers=frozenset(),
            led=frozenset(),
            acknowledged=frozenset(),
            left=tuple(budgets[name] for name in BUDGETS),
        )
        self.ways: dict[State, tuple[State, str] | None] = {}
        self.transition_count = 0

    def explore(self, states_max: int) -> bool:
        """Visit every state; False where there are more than that. Raises BreachError."""
        self.ways = {self.initial: None}
        queue = deque([self.initial])
        while queue:
            state = queue.popleft()
            for name, after in self.steps(state):
                self.transition_count += 1
                if after in self.ways:
                    continue
                self.ways[after] = (state, name)
                if len(self.ways) > states_max:
                    return False
                queue.append(after)
        return True

    def way_to(self, state: State) -> list[str]:
        """The names of the steps that lead there."""
        names: list[str] = []
        way = self.ways[state]
        while way is not None:
            names.append(way[1])
            way = self.ways[way[0]]
        return names[::-1]

    # ---- what can happen -------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step from here, with its name."""
        try:
            for number in state.flying:
                yield from self._arrive(state, number)
            for one in self.ids:
                yield from self._replica_steps(state, one)
            yield from self._arbiter_steps(state)
        except AssertionError as error:
            way = "\n".join(self.way_to(state))
            raise BreachError(f"{error}\nafter\n{way}") from error

    def _arrive(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        sender, to, message, entries = self.flying.values[number]
        name = f"{to} hears {message} of {sender}"
        before = state._replace(flying=state.flying - {number})
        after, sent = self._step(before, to, Replica.receive, sender, message, entries)
        if sender == ARBITER:
            for _, answer, _ in sent:
                assert isinstance(answer, messages.Fenced)
                register = self.registers.values[after.register]
                if answer.epoch == register.epoch and not register.is_seated:
                    after = after._replace(answers=after.answers | {(to, answer)})
            yield name, after
            return
        if sent and state.left[LATE]:
            yield f"{name}, answers late", self._fly(_less(after, LATE), to, sent)
        for _, answer, _ in sent:
            after, further = self._step(after, sender, Replica.receive, to, answer, ())
            after = self._fly(after, sender, further)
        yield name, after

    def _replica_steps(self, state: State, one: BrokerId) -> Iterator[tuple[str, State]]:
        view = self.replicas.views[state.replicas[one - 1]]
        left = state.left
        if left[RESTARTS]:
            yield f"{one} restarts", _less(self._do(state, one, Replica.restart), RESTARTS)
        if not view.leads:
            is_first = left[TIMEOUTS] == self.scope.timeouts
            may_stand = one == 1 if is_first else one in view.configuration.all_voters
            if left[TIMEOUTS] and may_stand:
                yield f"{one} stands", _less(self._time_out(state, one), TIMEOUTS)
            return
        if left[PROPOSALS]:
            yield f"{one} proposes", _less(self._do(state, one, Replica.propose), PROPOSALS)
        for peer in view.configuration.members:
            if peer != one:
                yield from self._round(state, one, peer)
        present = view.configuration
        if present.is_joint or not view.is_established or not view.is_configuration_committed:
            return
        register = self.registers.values[state.register]
        reported = register.report(view.epoch, present.version)
        if reported is not None:
            after = state._replace(register=self.registers.of(reported))
            yield f"{one} reports version {present.version}", after
        if left[CHANGES]:
            yield from self._changes(state, one, present)

    def _changes(
        self, state: State, leader: BrokerId, present: Configuration
    ) -> Iterator[tuple[str, State]]:
        epoch = self.replicas.views[state.replicas[leader - 1]].epoch
        for other in self.ids:
            if other in present.voters:
                voters = tuple(one for one in present.voters if one != other)
            else:
                voters = (*present.voters, other)
            if not voters:
                continue
            wanted = self._configuration(voters, present.version + 1)
            register = self.request(self.registers.values[state.register], epoch, wanted)
            if register is not None:
                asked = state._replace(register=self.registers.of(register))
                after = self._do(_less(asked, CHANGES), leader, Replica.change, wanted)
                yield f"{leader} goes to {voters}", after

    def _arbiter_steps(self, state: State) -> Iterator[tuple[str, State]]:
        register = self.registers.values[state.register]
        if state.left[GRANTS]:
            begun = register.begin()
            fences = {
                self.flying.of((ARBITER, one, messages.Fence(begun.epoch), ())) for one in self.ids
            }
            after = state._replace(
                register=self.registers.of(begun),
                answers=frozenset(),
                flying=state.flying | fences,
            )
            yield f"grant {begun.grant}", _less(after, GRANTS)
        answers = dict(state.answers)
        for leader in self.choose(register, answers):
            others = [one for one in answers if one != leader]
            for voters in {(leader,), *((leader, one) for one in others), (leader, *others)}:
                successor = self._configuration(voters, 0)
                seated, seat = self.seat(register, leader, answers[leader], successor)
                after = state._replace(
                    register=self.registers.of(seated),
                    answers=frozenset(),
                    flying=state.flying | {self.flying.of((ARBITER, leader, seat, ()))},
                )
                yield f"seat {leader} with {voters}", after

    def _configuration(self, voters: tuple[BrokerId, ...], version: int) -> Configuration:
        voters = tuple(sorted(voters))
        observers = tuple(one for one in self.ids if one not in voters)
        return Configuration(voters, (), observers, self.scope.min_insync, version)

    # ---- rules, for those who break them ---------------------------------------------------------

    def request(
        self, register: GroupVoters, epoch: Epoch, wanted: Configuration
    ) -> GroupVoters | None:
        """R2."""
        return register.request(epoch, wanted)

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        """R3 and R4: who may be seated; all whose logs are as good as the best."""
        chosen = register.choose(answers)
        if chosen is None:
            return []
        return [one for one, answer in answers.items() if answer == answers[chosen]]

    def seat(
        self,
        register: GroupVoters,
        leader: BrokerId,
        answer: messages.Fenced,
        successor: Configuration,
    ) -> tuple[GroupVoters, messages.Seat]:
        """R3."""
        return register.seat(leader, answer, successor)

    # ---- doing it --------------------------------------------------------------------------------

    def _do(self, state: State, one: BrokerId, what: What, *arguments: Hashable) -> State:
        """One replica takes a step; what it sends may arrive."""
        after, sent = self._step(state, one, what, *arguments)
        return self._fly(after, one, sent)

    def _fly(self, state: State, sender: BrokerId, sent: tuple[Sent, ...]) -> State:
        if not sent:
            return state
        flying = {self.flying.of((sender, to, message, entries)) for to, message, entries in sent}
        return state._replace(flying=state.flying | flying)

    def _step(
        self, state: State, one: BrokerId, what: What, *arguments: Hashable
    ) -> tuple[State, tuple[Sent, ...]]:
        before = state.replicas[one - 1]
        number, sent = self.replicas.step(before, what, *arguments)
        if number == before:
            return state, sent
        replicas = (*state.replicas[: one - 1], number, *state.replicas[one:])
        return self._judged(state._replace(replicas=replicas), one, before), sent

    def _time_out(self, state: State, one: BrokerId) -> State:
        """Stand; pre-votes are asked for and granted at once."""
        state, sent = self._step(state, one, Replica.time_out)
        waiting = deque((one, each) for each in sent)
        while waiting:
            sender, each = waiting.popleft()
            to, message, _ = each
            if isinstance(message, messages.VoteRequest | messages.VoteResponse) and message.pre:
                state, sent = self._step(state, to, Replica.receive, sender, message, ())
                waiting.extend((to, further) for further in sent)
            else:
                state = self._fly(state, sender, (each,))
        return state

    def _round(self, state: State, leader: BrokerId, peer: BrokerId) -> Iterator[tuple[str, State]]:
        """Replicate to one peer until nothing is left to be sent."""
        name = f"{leader} --> {peer}"
        after, sent = self._step(state, leader, Replica.tell, peer)
        for _ in range(ROUNDS_MAX):
            if not sent:
                break
            ((_, request, entries),) = sent
            if entries and state.left[LATE]:
                unheard = self._settle(_less(after, LATE), leader)
                yield f"{name}, late", self._fly(unheard, leader, sent)
            after, answers = self._step(after, peer, Replica.receive, leader, request, entries)
            if entries and answers and state.left[LATE]:
                unheard = self._settle(_less(after, LATE), leader)
                yield f"{name}, answered late", self._fly(unheard, peer, answers)
            for _, answer, _ in answers:
                after, _ = self._step(after, leader, Replica.hear, peer, answer, ())
            if not self.replicas.views[after.replicas[leader - 1]].leads:
                break
            after, sent = self._step(after, leader, Replica.tell, peer)
        yield name, self._settle(after, leader)

    def _settle(self, state: State, leader: BrokerId) -> State:
        return self._step(state, leader, Replica.settle)[0]

    # ---- judging ---------------------------------------------------------------------------------

    def _judged(self, state: State, one: BrokerId, before: int) -> State:
        """The state, with what this replica has just come to lead or to acknowledge. Raises
        AssertionError, by the name of a property."""
        was, now = self.replicas.views[before], self.replicas.views[state.replicas[one - 1]]
        if not now.leads:
            return state
        is_new = not was.leads or was.epoch != now.epoch
        if is_new:
            self._judge_leader(state, one, now.epoch, was.log)
            state = state._replace(led=state.led | {self.led.of((now.epoch, one, was.log))})
        if is_new or now.commit > was.commit:
            committed = now.log[: now.commit + 1]
            for number in state.led:
                epoch, _, log = self.led.values[number]
                assert epoch <= now.epoch or log[: len(committed)] == committed, (
                    f"OldSideNeverAcknowledges: {one} acknowledges {committed} in epoch "
                    f"{now.epoch}, and epoch {epoch} began with {log}"
                )
            earlier = {
                number
                for number in state.acknowledged
                if self.acknowledged.values[number][0] != now.epoch
            }
            latest = self.acknowledged.of((now.epoch, committed))
            state = state._replace(acknowledged=frozenset(earlier | {latest}))
        return state

    def _judge_leader(
        self, state: State, one: BrokerId, epoch: Epoch, log: tuple[Epoch, ...]
    ) -> None:
        for number in state.led:
            led, leader, _ = self.led.values[number]
            assert led != epoch or leader == one, (
                f"OneSuccessor: {leader} and {one} lead epoch {epoch}"
            )
        for number in state.acknowledged:
            acknowledged, committed = self.acknowledged.values[number]
            assert acknowledged >= epoch or log[: len(committed)] == committed, (
                f"NoAcknowledgedWriteLost: {one} leads epoch {epoch} with {log}, and epoch "
                f"{acknowledged} acknowledged {committed}"
            )


def _less(state: State, budget: int) -> State:
    left = state.left
    return state._replace(left=(*left[:budget], left[budget] - 1, *left[budget + 1 :]))
