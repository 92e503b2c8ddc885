"""The timeline of lost brokers is the controller's own, second by second."""

import random

import msgspec
import pytest
from tests.controller.outages.watched_world import Watched

from strandline.controller.outages.judging import Rules
from strandline.model.cluster import Labels
from strandline.pipeline.plan.assumptions import Assumptions, LossRate
from strandline.pipeline.plan.domains import LossDomain, loss_domains
from strandline.pipeline.plan.losses import Loss
from strandline.pipeline.plan.timeline import Step, Timelines
from strandline.placement.topology.universe import Candidate, Universe, bits_of

MS_AN_HOUR = 3_600_000
LOST_AFTER_MS = 900_000
SLACK_MS = 40_000
"""The controller looks each few seconds, and for 10 s before it believes a silence."""


class Case:
    """Nine brokers in three zones of two regions, as `Watched` has them."""

    def __init__(self, **cluster: int) -> None:
        self.labels: dict[int, Labels] = {int(one): x for one, x in Watched().labels.items()}
        candidates = [Candidate(id=one, labels=x) for one, x in Watched().labels.items()]
        self.universe = Universe(candidates)
        keys = {name.replace("_", "."): value for name, value in cluster.items()}
        self.assumptions = msgspec.structs.replace(Assumptions(), cluster=keys)
        rate = LossRate(1.0, 1.0)
        levels = dict.fromkeys(("region", "zone", "broker"), rate)
        self.domains = loss_domains(self.universe, levels)
        self.timelines = Timelines(self.universe, self.domains, self.assumptions)

    def number(self, level: str, name: str) -> int:
        """The number of a domain."""
        return next(
            number
            for number, one in enumerate(self.domains)
            if (one.level, one.name) == (level, name)
        )

    def steps(self, *losses: Loss) -> list[Step]:
        return list(self.timelines.steps(sorted(losses, key=lambda one: one.at_h)))

    def lost(self, steps: list[Step]) -> list[tuple[int, float]]:
        """[(broker, when it is lost)]."""
        return [(bit + 1, step.at_h) for step in steps for bit in bits_of(step.lost)]


def watched_losses(case: Case, losses: list[Loss], end_h: float) -> list[tuple[int, float]]:
    """What the controller itself finds: [(broker, when its replicas begin to be replaced)]."""
    watched = Watched(Rules(lost_after_ms=LOST_AFTER_MS))
    begin_ms = watched.now_ms
    spans = [
        (bit + 1, one.at_h, one.at_h + one.hours)
        for one in losses
        for bit in bits_of(case.domains[one.domain].mask)
    ]
    found, before = [], set[int]()
    while watched.now_ms - begin_ms < end_h * MS_AN_HOUR:
        now_h = (watched.now_ms - begin_ms) / MS_AN_HOUR
        watched.silent = {broker for broker, since, until in spans if since <= now_h < until}
        watched.look()
        replaced = {int(one) for one in watched.replaced if int(one) in watched.silent}
        found += [(one, now_h) for one in sorted(replaced - before)]
        before = replaced
        watched.now_ms += 5_000
    return found


# Broker 1 is the controller of `Watched`, and its zone east/a its view: it stays.
@pytest.mark.parametrize(
    "losses",
    [
        [("broker", "9", 0.1, 1.0)],
        [("broker", "9", 0.1, 0.2)],
        [("zone", "west/b", 0.1, 1.0)],
        [("region", "west", 0.1, 1.0)],
        [("broker", "9", 0.1, 1.5), ("zone", "west/b", 0.3, 0.2)],
        [("zone", "west/b", 0.1, 0.5), ("broker", "9", 0.2, 1.5)],
        [("broker", "7", 0.1, 1.5), ("broker", "8", 0.2, 1.5)],
        [("broker", "4", 0.1, 0.6), ("zone", "west/b", 0.15, 0.9), ("broker", "5", 0.2, 1.0)],
    ],
)
def test_brokers_are_lost_when_the_controller_finds_them_lost(
    losses: list[tuple[str, str, float, float]],
) -> None:
    case = Case()
    drawn = [Loss(at_h, case.number(level, name), h, False) for level, name, at_h, h in losses]
    told = case.lost(case.steps(*drawn))
    found = watched_losses(case, drawn, 2.0)
    assert [one for one, _ in sorted(told)] == [one for one, _ in sorted(found)], (told, found)
    for (_, when_h), (_, found_h) in zip(sorted(told), sorted(found), strict=True):
        assert abs(found_h - when_h) * MS_AN_HOUR <= SLACK_MS, (told, found)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_losses_are_judged_alike(seed: int) -> None:
    case, rng = Case(), random.Random(seed)
    names = [("broker", str(one)) for one in range(4, 10)] + [
        ("zone", "west/a"),
        ("zone", "west/b"),
    ]
    drawn = []
    for number in range(4):
        level, name = rng.choice(names)
        hours = rng.choice((0.1, 0.4, 0.9))
        drawn.append(Loss(0.1 + 0.4 * number, case.number(level, name), hours, False))
    told = case.lost(case.steps(*drawn))
    found = watched_losses(case, drawn, 3.0)
    assert sorted(one for one, _ in told) == sorted(one for one, _ in found), (drawn, told, found)


def test_a_hold_that_has_a_limit_ends() -> None:
    case = Case(outage_hold_max_ms=3_600_000)
    loss = Loss(1.0, case.number("region", "west"), 10.0, False)
    lost = case.lost(case.steps(loss))
    assert [one for one, _ in lost] == [4, 5, 6, 7, 8, 9]
    assert {round(when_h, 6) for _, when_h in lost} == {2.0}
    without = Case()
    assert without.lost(without.steps(loss)) == []


def test_who_returns_counts_again_once_it_has_caught_up() -> None:
    case = Case()
    recovery = case.assumptions.recovery
    copy_h = recovery.broker_gb * 1_000 / recovery.copy_mb_per_s / 3_600
    kept, emptied = (case.number("broker", name) for name in ("8", "9"))
    steps = case.steps(Loss(1.0, kept, 0.2, False), Loss(2.0, emptied, 0.2, True))
    times = [(round(step.at_h, 6), step.silent, step.absent, step.emptied) for step in steps]
    eight, nine = 1 << 7, 1 << 8
    catch_up_h = 0.2 * copy_h / case.assumptions.traffic.retained_hours
    assert times == [
        (1.0, eight, eight, 0),
        (1.2, 0, eight, 0),
        (round(1.2 + catch_up_h, 6), 0, 0, 0),
        (2.0, nine, nine, nine),
        (2.2, 0, nine, nine),
        (round(2.2 + copy_h, 6), 0, 0, 0),
    ]


def test_overlapping_losses_of_one_broker_are_one_silence() -> None:
    case = Case()
    zone, broker = case.number("zone", "west/b"), case.number("broker", "9")
    steps = case.steps(Loss(1.0, broker, 0.2, False), Loss(1.1, zone, 0.05, True))
    assert not any(step.returned >> 8 & 1 for step in steps if step.at_h < 1.2)
    assert isinstance(case.domains[zone], LossDomain)
    assert any(step.returned >> 8 & 1 for step in steps if step.at_h == pytest.approx(1.2))
