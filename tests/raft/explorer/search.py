"""Visits every state of a space, breadth first, so that a breach is found by a shortest way.

Why:    what was not visited was not checked, and what was is not visited twice.
How:    a state is packed into a few numbers. Of states that differ by the names of voters, or of
        observers, one is kept: whoever is alike at the beginning may change places, as nothing that
        is done here looks at names (`Space`), and the first of equals is nobody's rule. The way to
        a breach is found by taking it again.
Owns:   the states met; how each was come to; how often each kind of step was taken."""

from array import array
from collections import Counter
from collections.abc import Iterator
from struct import Struct

from tests.raft.explorer.names import Numbered, Renamings
from tests.raft.explorer.scope import Kind
from tests.raft.explorer.space import Answer, Space, State, Step


class BreachError(AssertionError):
    """A property does not hold."""


class Search:
    """See the module."""

    def __init__(self, space: Space, *, is_anybody_alike: bool = True) -> None:
        self.space = space
        ids = space.ids
        voters = space.scope.voters
        alike = (ids[:voters], ids[voters:]) if is_anybody_alike else [(one,) for one in ids]
        self._renamings = Renamings(alike)
        self._flying: Numbered[frozenset[int]] = Numbered()
        self._answers: Numbered[frozenset[Answer]] = Numbered()
        self._left: Numbered[tuple[int, ...]] = Numbered()
        self._layout = Struct(f"{len(ids) + 8}I")
        # {state: its number}, in the order in which they were met.
        self._met: dict[bytes, int] = {}
        # From which state each was met first.
        self._from = array("I")
        self.step_count = 0
        self.taken: Counter[Kind] = Counter()
        # How many steps lead to the last state that was visited.
        self.depth = 0

    @property
    def state_count(self) -> int:
        """Of the states met."""
        return len(self._met)

    @property
    def not_taken(self) -> frozenset[Kind]:
        """Kinds of steps that the scope names, and that were never taken."""
        return self.space.scope.kinds() - self.taken.keys()

    def states(self) -> Iterator[State]:
        """The states met."""
        return map(self._state, self._met)

    def has_met(self, state: State) -> bool:
        """Whether it was met, under these names or others."""
        return self._key(state) in self._met

    def explore(self, states_max: int) -> bool:
        """Visit every state; False where there are more than that. Raises BreachError."""
        level = [self._key(self.space.initial)]
        self._met[level[0]] = 0
        self._from.append(0)
        while level:
            following: list[bytes] = []
            for key in level:
                following += self._visit(key)
                if len(self._met) > states_max:
                    return False
            level = following
            self.depth += bool(level)
        return True

    def _visit(self, key: bytes) -> Iterator[bytes]:
        """The states that are new from here."""
        met = self._met
        number = met[key]
        state = self._state(key)
        taken = self.taken
        try:
            self.space.check(state)
            for step, after in self.space.steps(state):
                taken[step[0]] += 1  # type: ignore[index]
                self.step_count += 1
                reached = self._key(after)
                if reached not in met:
                    met[reached] = len(met)
                    self._from.append(number)
                    yield reached
        except AssertionError as error:
            raise self._breach(number) from error

    def _breach(self, number: int) -> BreachError:
        """What is broken in the next step, and the steps before, under the same names all along."""
        numbers = [number]
        while numbers[-1]:
            numbers.append(self._from[numbers[-1]])
        state, steps = self.space.initial, []
        for wanted in reversed(numbers[:-1]):
            step, state = self._step_to(state, wanted)
            steps.append(self.space.describe(step))
        way = "\n".join(steps)
        try:
            self.space.check(state)
            list(self.space.steps(state))
        except AssertionError as error:
            return BreachError(f"{error}\nafter\n{way}")
        raise LookupError("nothing is broken under other names")

    def _step_to(self, state: State, wanted: int) -> tuple[Step, State]:
        for step, after in self.space.steps(state):
            if self._met.get(self._key(after)) == wanted:
                return step, after
        raise LookupError("the way does not lead there under other names")

    def _key(self, state: State) -> bytes:
        """The same for all states that differ by names."""
        space = self.space
        state = space.pruned(state)
        renamings = self._renamings.for_colours(space.colours(state))
        if len(renamings) == 1:
            (renaming,) = renamings
            if renaming != self._renamings.same:
                state = space.renamed(state, renaming)
            return self._packed(state)
        return min([self._packed(space.renamed(state, renaming)) for renaming in renamings])

    def _packed(self, state: State) -> bytes:
        return self._layout.pack(
            *state.replicas,
            state.register,
            state.led,
            state.acknowledged,
            self._flying.of(state.flying),
            self._answers.of(state.answers),
            self._left.of(state.left),
            state.withheld,
            state.lost,
        )

    def _state(self, key: bytes) -> State:
        *replicas, register, led, acknowledged, flying, answers, left, withheld, lost = (
            self._layout.unpack(key)
        )
        return State(
            replicas=tuple(replicas),
            flying=self._flying.values[flying],
            register=register,
            answers=self._answers.values[answers],
            led=led,
            acknowledged=acknowledged,
            left=self._left.values[left],
            withheld=withheld,
            lost=lost,
        )
