"""What the balancer would do, to the end, worked out on a copy of the controller's state. Pure.

Why:    whoever changes a policy wants to know first what that moves; and only the balancer itself
        knows.
How:    rounds, as the active controller makes them. What one of them moves is done before the next
        begins, which is the only difference: where more partitions have to move than may at the
        same time, later ones may find other brokers emptier. In the end a round that looks at the
        one topic says what waits, and for what.
Owns:   nothing; it changes the state that it is given, by records.
Source: design section 7; decision 0010."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from strandline.controller.balancer.health import Condition
from strandline.controller.balancer.plans import Plans, Replicas
from strandline.controller.balancer.reasons import Waits
from strandline.controller.balancer.round import Round, Settings
from strandline.controller.decision import leaving_of
from strandline.controller.records import ReassignmentSet, VotersGranted, VotersStable
from strandline.controller.state import ControllerState
from strandline.model.ids import GroupId

LOOKS_MAX = 1_000_000
"""So many times partitions are looked at: about ten seconds."""
WAVES_MAX = 50
"""A topic of many partitions moves in so many waves here, though fewer may move at a time: each
wave looks at the whole cluster."""


@dataclass(frozen=True, slots=True)
class Step:
    """A partition's replicas become others: why is a code of `reasons.MOVES`."""

    topic: str
    partition: int
    before: Replicas
    after: Replicas
    code: str

    @property
    def coming(self) -> Replicas:
        """Who gets a copy."""
        return tuple(one for one in self.after if one not in self.before)


@dataclass(frozen=True, slots=True)
class Preview:
    """All steps, in order. `waits`: why partitions of the topic stay as they are then. `is_whole`:
    whether nothing follows."""

    steps: tuple[Step, ...]
    waits: Waits
    is_whole: bool


def preview(
    state: ControllerState, condition: Condition, settings: Settings, *, topic: str
) -> Preview:
    """What follows from this state. What moves already is taken to arrive first."""
    cluster = state.cluster
    plans = Plans(cluster.brokers.values(), condition.lost, leaving_of(cluster))
    steps: list[Step] = []
    at_once = max(settings.moves_max, len(cluster.topics[topic].partitions) // WAVES_MAX)
    settings = replace(settings, moves_max=at_once)
    _arrive(state, sorted(cluster.moving))
    is_over = False
    rounds_max = max(2, LOOKS_MAX // max(1, len(cluster.groups)))
    for _ in range(rounds_max):
        one = Round(cluster, condition, plans, settings=settings, reasons={})
        _run(one)
        for move in one.moves:
            command = move.command
            partition = cluster.groups[command.group]
            steps.append(
                Step(
                    partition.topic, partition.index, partition.replicas, command.target, move.code
                )
            )
            state.replay(ReassignmentSet(command.group, command.target, by_balancer=True))
        _arrive(state, sorted(cluster.moving))
        is_over = not one.moves and not one.is_cut
        if is_over:
            break
    narrowed = replace(cluster, topics={topic: cluster.topics[topic]})
    last = Round(narrowed, condition, plans, settings=settings, reasons={})
    _run(last)
    return Preview(tuple(steps), last.waits, is_over)


def _run(one: Round) -> None:
    for _ in one.steps():
        pass


def _arrive(state: ControllerState, groups: Iterable[GroupId]) -> None:
    """What moves is where it is wanted."""
    for group in groups:
        one = state.cluster.groups[group]
        if not one.pending:
            state.replay(VotersGranted(group, one.version + 1, one.target))
        state.replay(VotersStable(group, one.version + 1))
