"""Folded behaviour is the placement's own, for each loss and each partition."""

import random
from itertools import combinations

import pytest
from tests.pipeline.plan.described import cluster_of, plan_of

from strandline.model.cluster import Roles
from strandline.pipeline.plan.alternatives import Placed
from strandline.pipeline.plan.assumptions import Assumptions
from strandline.pipeline.plan.behaviour import Around, signature_of
from strandline.pipeline.plan.domains import loss_domains
from strandline.pipeline.plan.shapes import Shapes
from strandline.placement.explain.outcomes import outcomes
from strandline.placement.explain.topics import placement_of
from strandline.placement.policy.document import Goal
from strandline.placement.survival.course import BADNESS
from strandline.placement.survival.fates import Fates
from strandline.placement.topology.universe import Universe, bits_of

POLICIES = [
    "rf3",
    "3+2+1",
    "2+2+1",
    "2+2+1,min-insync=4",
    "2+2+1o,min-insync=3",
    "2+1+2o,min-insync=2,promotion=under-replicated",
    "2+2+1o,min-insync=3,promotion=region-lost",
]
ASSUMED = Assumptions(controllers=(1, 5, 9))


def shapes_of(policy: str, assumed: Assumptions) -> tuple[Universe, Placed, Shapes, Around]:
    cluster = cluster_of(3, zones=2, brokers=2)
    plan = plan_of(cluster, [policy], assumed, partitions=24)
    universe = Universe(plan.candidates)
    (placed,) = plan.alternatives
    domains = loss_domains(universe, assumed.losses.by_level())
    around = Around.of(domains, universe, placed.rules)
    request = placed.alternative.request
    return universe, placed, Shapes(universe, request, placed.rules, around), around


@pytest.mark.parametrize("assumed", [Assumptions(), ASSUMED], ids=["alone", "controllers"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_single_loss_does_what_the_cluster_foretells(
    policy: str, assumed: Assumptions
) -> None:
    universe, placed, shapes, around = shapes_of(policy, assumed)
    request = placed.alternative.request
    placements = [
        (placement_of(universe, roles, request), (number,))
        for number, roles in enumerate(placed.partitions)
    ]
    told = {one.goal: one for one in outcomes(placements, placed.rules) if not one.is_cut}
    for level in ("region", "zone", "broker"):
        worst = 0
        for domain in around.domains:
            if domain.level != level:
                continue
            for roles in placed.partitions:
                shape = shapes.of(roles)
                behaviour = shape.behaviour
                absent = shape.local(domain.mask, shapes.down(domain.mask))
                answer = behaviour.after(behaviour.own, absent)
                worst = max(worst, BADNESS[answer.course])
        assert worst == BADNESS[told[Goal(**{level: 1})].course], level


@pytest.mark.parametrize("assumed", [Assumptions(), ASSUMED], ids=["alone", "controllers"])
@pytest.mark.parametrize("policy", POLICIES)
def test_folded_answers_are_those_of_each_partition(policy: str, assumed: Assumptions) -> None:
    universe, placed, shapes, around = shapes_of(policy, assumed)
    rng = random.Random(3)
    for roles in dict.fromkeys(placed.partitions):
        shape = shapes.of(roles)
        fates = Fates(placement_of(universe, roles, placed.alternative.request), placed.rules)
        for domains in rng.sample(list(combinations(around.domains, 2)), 40):
            mask = domains[0].mask | domains[1].mask
            absent = shape.local(mask, shapes.down(mask))
            answer = shape.behaviour.after(shape.behaviour.own, absent)
            lost = fates.mask(universe.candidates[bit].id for bit in bits_of(mask))
            assert answer.course is fates.of(lost).course
            danger = shape.behaviour.danger(shape.behaviour.own, shape.local(mask))
            assert danger.is_short is not fates.of(lost).course.keeps_data
            fatal = {
                number
                for number, one in enumerate(around.domains)
                if one.rate.destroyed
                and not danger.is_short
                and not fates.of(
                    lost | fates.mask(universe.candidates[bit].id for bit in bits_of(one.mask))
                ).course.keeps_data
            }
            assert set(bits_of(shape.fatal(danger))) == fatal


def test_partitions_of_one_pattern_share_their_answers() -> None:
    _, placed, shapes, _ = shapes_of("1+1+1", Assumptions())
    for roles in placed.partitions:
        shapes.of(roles)
    assert len(set(placed.partitions)) > 5 and len(shapes.behaviours) == 1


def test_another_zone_in_common_is_another_pattern() -> None:
    universe, placed, _, around = shapes_of("rf3", Assumptions())
    ids = [one.id for one in universe.candidates]
    together, apart = Roles((ids[0], ids[1], ids[4])), Roles((ids[0], ids[2], ids[4]))
    assert signature_of(together, universe, around) != signature_of(apart, universe, around)
    same = Roles((ids[4], ids[5], ids[0]))
    assert signature_of(together, universe, around) == signature_of(same, universe, around)
    assert placed.rules.controllers == ()


def test_an_observer_stands_in_and_leaves_once_the_voter_is_back() -> None:
    _, placed, shapes, _ = shapes_of("2+1+1o,min-insync=2", Assumptions())
    behaviour = shapes.of(placed.partitions[0]).behaviour
    first = behaviour.after(behaviour.own, 0b001)
    assert first.is_writable and first.acting == 0b110
    second = behaviour.after(first.acting, 0b011)
    assert second.is_writable and second.acting == 0b1100
    assert behaviour.after(second.acting, 0).acting == behaviour.own
