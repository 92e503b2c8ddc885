"""Many partitions come out even over the brokers, as far as their policy lets them.

Design section 7; decision 0008."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import bench.placement
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.placement.exhaustive import right_seats
from tests.placement.solver_world import rules_of

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.checks import check_policy
from strandline.placement.policy.document import Leaders, Policy, Rule, Selector, Spread
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.floors import with_floors
from strandline.placement.solver.patterns import patterns_of
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.request import Request
from strandline.placement.solver.search import Search, orbits_of
from strandline.placement.solver.solve import Solution, solve
from strandline.placement.topology.universe import Candidate, Universe, bits_of

PARTITIONS = 120
ON_SSD = "rules: [{count: %d, where: [{label: disk, op: in, values: [ssd]}]}, {count: %d}]\n"
LED_FROM_EAST = "leaders: {prefer: [[{label: region, op: in, values: [r0]}]]}\n"


def brokers(*, regions: int, each: int, ssd: int, racks: int = 1) -> list[Candidate]:
    """So many brokers in each region, so many of these with an ssd."""
    return [
        Candidate(
            id=BrokerId(region * each + number),
            labels=Labels(
                region=f"r{region}",
                rack=f"k{number % racks}",
                free=(("disk", "ssd" if number < ssd else "hdd"),),
            ),
        )
        for region in range(regions)
        for number in range(each)
    ]


def solved(policy: str, candidates: Sequence[Candidate], *, partitions: int) -> Solution:
    request = Request(policy=decode_policy(policy))
    found = solve(request, candidates, partitions=partitions, rng=random.Random(1))
    assert isinstance(found, Solution), str(found)
    return found


def assert_even(counts: Counter[BrokerId], candidates: Sequence[Candidate]) -> None:
    """Within 5 % of the mean, or one from it."""
    values = [counts[one.id] for one in candidates]
    mean = sum(values) / len(values)
    assert max(values) <= max(mean * 1.05, mean + 1), values
    assert min(values) >= min(mean * 0.95, mean - 1), values


@pytest.mark.parametrize(
    ("each", "ssd", "racks", "rules"),
    [
        pytest.param(6, 3, 1, (1, 2), id="half of the brokers"),
        pytest.param(6, 2, 1, (1, 2), id="just as many as the rule needs"),
        pytest.param(6, 4, 1, (2, 1), id="two of three replicas"),
        pytest.param(6, 6, 1, (1, 2), id="all of them"),
        pytest.param(24, 10, 7, (1, 2), id="racks that are not alike"),
    ],
)
def test_the_rules_take_turns_where_leaders_should_be(
    each: int, ssd: int, racks: int, rules: tuple[int, int]
) -> None:
    candidates = brokers(regions=3, each=each, ssd=ssd, racks=racks)
    found = solved(ON_SSD % rules + LED_FROM_EAST, candidates, partitions=100 * each)
    assert_even(Counter(id for one in found.partitions for id in one.replicas), candidates)
    leaders = Counter(one.voters[0] for one in found.partitions)
    assert_even(leaders, [one for one in candidates if one.labels.region == "r0"])
    assert found.searches == 0


def test_a_rule_that_has_only_the_preferred_place_takes_it() -> None:
    """Another rule's turn there would leave two replicas in one region."""
    candidates = [
        one
        for one in brokers(regions=3, each=4, ssd=2)
        if one.labels.region == "r0" or one.labels.get("disk") == "hdd"
    ]
    found = solved(ON_SSD % (1, 2) + LED_FROM_EAST, candidates, partitions=200)
    labels = {one.id: one.labels for one in candidates}
    for one in found.partitions:
        assert sorted(labels[id].region for id in one.voters) == ["r0", "r1", "r2"]
        assert labels[one.voters[0]].get("disk") == "ssd"
    leaders = Counter(one.voters[0] for one in found.partitions)
    assert sorted(leaders.values()) == [100, 100]


_SELECTORS = (
    Selector("disk", "in", ("ssd",)),
    Selector("power", "in", ("p",)),
    Selector("region", "in", ("e", "w")),
    Selector("region", "notIn", ("e",)),
    Selector("zone", "in", ("1",)),
)
_TIERS = (
    (Selector("region", "in", ("e",)),),
    (Selector("zone", "in", ("2",)),),
    (Selector("power", "in", ("q",)),),
    (Selector("region", "in", ("w", "s")),),
)
_SPREADS: tuple[tuple[Spread, ...], ...] = (
    (),
    (Spread("region", max_per=2),),
    (Spread("zone", min_distinct=2),),
    (Spread("power", level="soft", weight=2),),
)
_labels = st.builds(
    lambda region, zone, disk, power: Labels(
        region=region, zone=zone, free=(("disk", disk), ("power", power))
    ),
    st.sampled_from("ews"),
    st.sampled_from("12"),
    st.sampled_from(("ssd", "hdd")),
    st.sampled_from("pq"),
)


@st.composite
def _policies(draw: st.DrawFn) -> Policy:
    """Rules with conditions that overlap, and leaders that should be somewhere."""
    rules = []
    for _ in range(draw(st.integers(0, 2))):
        level = draw(st.sampled_from(("hard", "hard", "soft")))
        where = (draw(st.sampled_from(_SELECTORS)),)
        rules.append(Rule(count=draw(st.integers(1, 2)), where=where, level=level))  # type: ignore[arg-type]
    rules.append(Rule(count=draw(st.integers(1, 2))))
    prefer = draw(st.lists(st.sampled_from(_TIERS), max_size=2, unique=True))
    policy = Policy(
        rules=tuple(rules), spread=draw(st.sampled_from(_SPREADS)), leaders=Leaders(tuple(prefer))
    )
    check_policy(policy)
    return policy


def least_loads(best: Sequence[int], width: int) -> list[int]:
    """What brokers hold when each partition has those of all best placements that hold least."""
    loads = [0] * width
    for _ in range(PARTITIONS):
        for bit in bits_of(min(best, key=lambda mask: sum(loads[b] for b in bits_of(mask)))):
            loads[bit] += 1
    return loads


def best_placements(policy: Policy, candidates: Sequence[Candidate]) -> list[int]:
    """Those that cost least of all placements of a policy, found by brute force, as masks."""
    request = Request(policy=policy)
    universe = Universe(candidates)
    voters = sum(count for _, count in rules_of(policy, 0))
    plan = with_floors(make_plan(request, universe, voters=voters))
    costs: dict[int, int] = {}
    for seats in right_seats(request, plan, candidates, voters=voters):
        mask, cost = universe.mask(bit for bit, _ in seats), plan.cost(seats)
        costs[mask] = min(cost, costs.get(mask, cost))
    return [mask for mask, cost in costs.items() if cost == min(costs.values())]


def assert_even_as(
    best: Sequence[int], policy: Policy, candidates: Sequence[Candidate], *, seed: int
) -> None:
    """Partitions have best placements, and load the brokers about as evenly as these can."""
    request = Request(policy=policy)
    found = solve(request, candidates, partitions=PARTITIONS, rng=random.Random(seed))
    assert isinstance(found, Solution)
    index = Universe(candidates).index
    placed = [sum(1 << index[id] for id in one.voters) for one in found.partitions]
    assert set(placed) <= set(best)
    loads = [sum(mask >> bit & 1 for mask in placed) for bit in range(len(candidates))]
    least = least_loads(best, len(candidates))
    assert max(loads) <= max(least) * 1.05 + 2, (loads, least)
    assert sum(load**2 for load in loads) <= sum(load**2 for load in least) * 1.05, (loads, least)


def numbered(labels: Sequence[Labels]) -> list[Candidate]:
    """Brokers 0, 1, ... with these labels."""
    return [Candidate(id=BrokerId(n), labels=one) for n, one in enumerate(labels)]


@settings(max_examples=100, deadline=None)
@given(_policies(), st.lists(_labels, min_size=4, max_size=7), st.integers(0, 9))
def test_brokers_are_as_even_as_where_all_best_placements_are_known(
    policy: Policy, labels: list[Labels], seed: int
) -> None:
    assume(sum(count for _, count in rules_of(policy, 0)) <= 5)
    candidates = numbered(labels)
    best = best_placements(policy, candidates)
    assume(best)
    assert_even_as(best, policy, candidates, seed=seed)


_TWO_POWERED_AND_TWO = (
    Rule(count=2, where=(Selector("power", "in", ("p",)),), level="soft"),
    Rule(count=2),
)


def powered(*places: str) -> list[Candidate]:
    """Brokers at "region/zone/power", or "region/zone/power/disk"."""
    return numbered(
        [
            Labels(region=region, zone=zone, free=(("power", power), *(("disk", d) for d in disk)))
            for region, zone, power, *disk in (place.split("/") for place in places)
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_regions_that_can_be_exchanged_are_even_though_their_brokers_move_together(
    seed: int,
) -> None:
    """Brokers 0 and 6 are equals, and so are 1 and 3: who takes 6 for 0 has to take 3 for 1. When
    only the first of them was asked what it holds, 3 held 91 replicas, and 1 held 53."""
    policy = Policy(
        rules=_TWO_POWERED_AND_TWO,
        spread=(Spread("region", max_per=2),),
        leaders=Leaders(
            ((Selector("power", "in", ("q",)),), (Selector("region", "in", ("e",)),)),
        ),
    )
    candidates = powered("s/2/p", "w/2/q", "e/2/q", "s/1/q", "e/1/p", "e/2/p", "w/1/p")
    assert_even_as(best_placements(policy, candidates), policy, candidates, seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_equal_brokers_are_even_where_there_is_one_best_placement_but_for_exchanges(
    seed: int,
) -> None:
    """By load and chance one of two equals held 100 replicas, and the other one 20."""
    policy = Policy(
        rules=_TWO_POWERED_AND_TWO,
        spread=(Spread("power", level="soft", weight=2),),
        leaders=Leaders(
            ((Selector("power", "in", ("q",)),), (Selector("zone", "in", ("2",)),)),
        ),
    )
    candidates = powered("w/1/p", "w/1/p", "e/2/q", "s/2/q", "w/1/p", "s/1/p", "e/1/p")
    assert_even_as(best_placements(policy, candidates), policy, candidates, seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_placements_that_load_the_same_kinds_of_brokers_are_one_of_the_hundred(seed: int) -> None:
    """Of 119 best placements, which differ by more than exchanges, 13 load other kinds."""
    policy = Policy(
        rules=(Rule(count=2, where=(Selector("disk", "in", ("ssd",)),)), *_TWO_POWERED_AND_TWO),
        spread=(Spread("zone", min_distinct=2),),
    )
    east = ("e/1/q/hdd", "e/2/p/hdd", "e/2/p/ssd", "e/1/p/ssd")
    west = ("w/2/p/ssd", "w/2/q/hdd", "w/2/p/hdd", "w/2/q/hdd")
    candidates = powered(*east, *west, "s/1/p/ssd")
    assert_even_as(best_placements(policy, candidates), policy, candidates, seed=seed)


def test_every_set_of_brokers_is_a_pattern_though_more_than_a_hundred_placements_are_best() -> None:
    """Any 4 of 7 brokers, all of them different, can take the 4 replicas, in several ways each."""
    banned = (("1", "5"), ("2", "5"), ("3", "6"), ("4", "6"))
    rules = tuple(Rule(count=1, where=(Selector("broker", "notIn", one),)) for one in banned)
    candidates = [Candidate(id=BrokerId(n), labels=Labels(region="a")) for n in range(1, 8)]
    plan = make_plan(Request(policy=Policy(rules=rules)), Universe(candidates), voters=4)
    orbits = orbits_of(plan)
    patterns = patterns_of(plan, Search(plan, orbits).run(), orbits)
    assert patterns is not None and patterns.count == math.comb(7, 4)


# ---- the size that is promised -----------------------------------------------------------------


@pytest.mark.parametrize("policy", ["{}", "survive: [region, zone, any two brokers]"])
def test_ten_thousand_partitions_are_even_over_two_hundred_brokers(policy: str) -> None:
    """Within 5 % of the mean, replicas and leaders: 250 and 50 of each broker; over five regions of
    three zones of seven racks, which is not even."""
    candidates = bench.placement.brokers(5)
    assert len(candidates) == 200
    request = Request(policy=decode_policy(policy), default_voters=5)
    found = solve(request, candidates, partitions=10_000, rng=random.Random(1))
    assert isinstance(found, Solution) and len(found.partitions) == 10_000
    replicas = Counter(id for one in found.partitions for id in one.replicas)
    leaders = Counter(one.voters[0] for one in found.partitions)
    assert replicas.total() == 50_000 and leaders.total() == 10_000
    for counts, low, high in ((replicas, 237.5, 262.5), (leaders, 47.5, 52.5)):
        values = [counts[one.id] for one in candidates]
        assert low <= min(values) and max(values) <= high, sorted(values)
