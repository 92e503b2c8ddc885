"""All moves that the balancer would make, worked out on a copy of the controller's state. Pure.

Why:    before changing a policy, an operator needs to know which replicas will move; only the
        balancer itself knows.
How:    It makes rounds as the active controller does, each with the moves of the one before it in
        place: the order of the copies does not matter, because rounds count the replicas that
        brokers will hold. The present moves arrive first. If that took too many rounds, more moves
        go into a round than the limit allows; if evening out comes at the end, the balancer may
        choose others then, and the preview says so. A last round looks at the one topic and reports
        the partitions that wait, and why.
Owns:   nothing; it changes the state that it is given, by records.
Source: design section 7; decision 0010."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from strandline.controller.balancer.health import Condition
from strandline.controller.balancer.plans import Plans
from strandline.controller.balancer.reasons import Waits
from strandline.controller.balancer.round import Round, Settings
from strandline.controller.decision import leaving_of
from strandline.controller.records import ReassignmentSet, VotersGranted, VotersStable
from strandline.controller.state import ControllerState
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId, GroupId

LOOKS_MAX = 1_000_000
"""How many partitions a preview looks at, in all its rounds: about ten seconds."""
ROUNDS_MIN = 2
SPARE_RATIO = 2
"""The largest number of rounds, as a multiple of those that the topic's partitions take if each
moves once: some take two steps, and other topics' partitions move, too."""


@dataclass(frozen=True, slots=True)
class Step:
    """A partition gets other replicas; `why`: a code of `reasons.MOVES`."""

    topic: str
    partition: int
    before: Roles
    after: Roles
    code: str

    @property
    def coming(self) -> tuple[BrokerId, ...]:
        """The brokers that get a copy."""
        return tuple(one for one in self.after.all if one not in self.before.all)


@dataclass(frozen=True, slots=True)
class Preview:
    """All steps, in order. `waits`: why partitions of the topic then stay as they are. `is_whole`:
    whether no further move follows. `arriving`: partitions with a present move, which the preview
    assumes to arrive. `is_by_turns`: whether each round kept the limit of moves."""

    steps: tuple[Step, ...]
    waits: Waits
    is_whole: bool
    arriving: int
    is_by_turns: bool


def preview(
    state: ControllerState, condition: Condition, settings: Settings, *, topic: str | None
) -> Preview:
    """The moves that follow from this state. The present moves arrive first. `topic`: the one that
    matters; None: all."""
    cluster = state.cluster
    plans = Plans(cluster.brokers.values(), condition.lost, leaving_of(cluster))
    steps: list[Step] = []
    rounds_max = max(ROUNDS_MIN, LOOKS_MAX // max(1, len(cluster.groups)))
    wanted = cluster.topics if topic is None else {topic: cluster.topics[topic]}
    count = sum(len(one.partitions) for one in wanted.values())
    at_once = -(-count * SPARE_RATIO // rounds_max)
    is_by_turns = at_once <= settings.moves_max
    settings = replace(settings, moves_max=max(settings.moves_max, at_once))
    arriving = len(cluster.moving)
    _arrive(state, sorted(cluster.moving))
    is_over = False
    for _ in range(rounds_max):
        one = Round(cluster, condition, plans, settings=settings, reasons={})
        _run(one)
        for move in one.moves:
            command = move.command
            partition = cluster.groups[command.group]
            after = Roles(command.target, command.target_observers)
            steps.append(Step(partition.topic, partition.index, partition.roles, after, move.code))
            state.replay(
                ReassignmentSet(
                    command.group, after.voters, by_balancer=True, observers=after.observers
                )
            )
        _arrive(state, sorted(cluster.moving))
        is_over = not one.moves and not one.is_cut
        if is_over:
            break
    narrowed = replace(cluster, topics=wanted)
    last = Round(narrowed, condition, plans, settings=settings, reasons={})
    _run(last)
    return Preview(tuple(steps), last.waits, is_over, arriving, is_by_turns)


def _run(one: Round) -> None:
    for _ in one.steps():
        pass


def _arrive(state: ControllerState, groups: Iterable[GroupId]) -> None:
    """Complete the present moves."""
    for group in groups:
        one = state.cluster.groups[group]
        if not one.pending:
            version = one.version + 1
            state.replay(VotersGranted(group, version, one.target, one.target_observers))
        state.replay(VotersStable(group, one.version + 1))
