"""A plan as work that any process can do: some trials of it, for every policy.

Why:    executors, processes of this machine and tests run the very same function.
How:    a `Plan` is plain data and travels to executors; each builds its `Trials` once and keeps
        their answers. Trial n draws its losses from (seed, n) alone and every policy meets the same
        losses, so differences between policies are more certain than each result.
Owns:   nothing but caches."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from strandline.pipeline.plan.alternatives import Placed
from strandline.pipeline.plan.assumptions import SECONDS_AN_HOUR, Assumptions
from strandline.pipeline.plan.behaviour import Around
from strandline.pipeline.plan.domains import loss_domains, losses_a_year
from strandline.pipeline.plan.losses import Loss, draw_losses
from strandline.pipeline.plan.repairs import Repairs
from strandline.pipeline.plan.shapes import Shapes
from strandline.pipeline.plan.stops import Draw
from strandline.pipeline.plan.tally import Tally
from strandline.pipeline.plan.timeline import Timelines
from strandline.pipeline.plan.topic_year import TopicSize, TopicYears
from strandline.pipeline.plan.traffic import CopyPrices
from strandline.placement.topology.universe import Candidate, Universe

TRIALS_MIN = 20
"""Fewer years give no interval worth the name."""
_MB_A_GB = 1_000


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it. Equal plans give equal results."""

    candidates: tuple[Candidate, ...]
    alternatives: tuple[Placed, ...]
    assumptions: Assumptions
    seed: int

    def losses_a_year(self) -> float:
        """The mean number of losses in one trial, which is a year."""
        rates = self.assumptions.losses.by_level()
        return losses_a_year(loss_domains(Universe(self.candidates), rates))

    def trials_for(self, events: int) -> int:
        """How many trials have so many losses, on average; at least `TRIALS_MIN`."""
        return max(TRIALS_MIN, -int(-events // max(self.losses_a_year(), 1e-9)))


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial. `tallies`: by alternative, the numbers of a `Tally`."""

    trial: int
    losses: int
    tallies: tuple[tuple[float, ...], ...]


class Trials:
    """Runs trials of one plan."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.seed
        assumptions = plan.assumptions
        universe = Universe(plan.candidates)
        self._domains = loss_domains(universe, assumptions.losses.by_level())
        self._timelines = Timelines(universe, self._domains, assumptions)
        self.topics = [self._topic(one, universe, assumptions) for one in plan.alternatives]

    def _topic(self, one: Placed, universe: Universe, assumptions: Assumptions) -> TopicYears:
        request = one.alternative.request
        around = Around.of(self._domains, universe, one.rules)
        traffic = assumptions.traffic
        per_h = traffic.produced_mb_per_s / _MB_A_GB * SECONDS_AN_HOUR / len(one.partitions)
        return TopicYears(
            one.partitions,
            Shapes(universe, request, one.rules, around),
            Repairs(universe, request, has_policy=one.alternative.has_policy),
            domains=self._domains,
            recovery=assumptions.recovery,
            size=TopicSize(per_h * traffic.retained_hours, per_h),
            prices=CopyPrices(universe, assumptions.prices),
        )

    def run(self, trial: int) -> TrialRow:
        """One year."""
        losses = draw_losses(self._domains, self._seed, trial)
        steps = list(self._timelines.steps(losses))
        tallies = []
        for topic in self.topics:
            draw = Draw(random.Random(f"{self._seed} {trial}"))
            tally = topic.run(steps, draw)
            self._add_stop(topic, tally, losses, draw)
            tallies.append(tally.row())
        return TrialRow(trial, len(losses), tuple(tallies))

    def _add_stop(self, topic: TopicYears, tally: Tally, losses: list[Loss], draw: Draw) -> None:
        """Run the year once more with a loss that would have stopped a partition: see `stops`."""
        found = draw.loss()
        if found is None:
            return
        partition, loss = found
        steps = self._timelines.steps(sorted([*losses, loss], key=lambda one: one.at_h))
        stopped_h, unreadable_h = topic.stop_at(loss.at_h, partition, steps)
        tally.stopped_sampled_h = tally.stops_expected * stopped_h
        tally.unreadable_sampled_h = tally.stops_expected * unreadable_h


def encode(plan: Plan) -> bytes:
    """The plan for other processes of the same code."""
    return pickle.dumps(plan)


def run_trials(plan: bytes, trials: Sequence[int]) -> list[TrialRow]:
    """These trials, in this process. `plan`: as `encode` gives it."""
    made = _trials_of(plan)
    return [made.run(one) for one in trials]


@lru_cache(maxsize=2)
def _trials_of(plan: bytes) -> Trials:
    found = pickle.loads(plan)
    assert isinstance(found, Plan)
    return Trials(found)


def chunks(trials: int, count: int) -> list[range]:
    """The trials, shared out in about `count` parts."""
    size = max(1, -(-trials // count))
    return [range(begin, min(begin + size, trials)) for begin in range(0, trials, size)]
