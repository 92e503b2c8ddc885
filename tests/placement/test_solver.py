"""What policies place, and what refusals say (design section 7; decision 0008)."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from tests.placement.solver_world import candidate, cluster, grid
from tests.placement.test_spread import make_broker

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.constraints.residency import banned_by
from strandline.placement.policy.confluent import import_confluent
from strandline.placement.policy.text import decode_policy, encode_policy
from strandline.placement.solver.floors import with_floors
from strandline.placement.solver.judge import judge
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.relaxing import relaxations
from strandline.placement.solver.repair import repair
from strandline.placement.solver.request import Request
from strandline.placement.solver.search import Search, orbits_of
from strandline.placement.solver.solve import Placed, Refusal, Solution, best_plan, solve
from strandline.placement.spread import Load, place
from strandline.placement.survival.goals import broken_goals
from strandline.placement.survival.replicas import Placement, Replica
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate, Universe, bits_of

THREE_REGIONS = cluster(*[f"{r}/{z}" for r in "abc" for z in "123" for _ in range(2)])


def solved(
    policy: str, candidates: Sequence[Candidate], *, partitions: int = 1, seed: int = 1, **more: int
) -> Solution:
    request = Request(policy=decode_policy(policy), **more)  # type: ignore[arg-type]
    found = solve(request, candidates, partitions=partitions, rng=random.Random(seed))
    assert isinstance(found, Solution), str(found)
    assert found.is_proved and len(found.partitions) == partitions
    return found


def refused(policy: str, candidates: Sequence[Candidate], **more: int) -> Refusal:
    request = Request(policy=decode_policy(policy), **more)  # type: ignore[arg-type]
    found = solve(request, candidates, rng=random.Random(1))
    assert isinstance(found, Refusal) and "\n" not in str(found)
    return found


def where(candidates: Sequence[Candidate], brokers: Sequence[BrokerId], label: str) -> list[str]:
    labels = {one.id: one.labels for one in candidates}
    return sorted(labels[broker].get(label) for broker in brokers)


def test_a_region_a_zone_and_any_two_brokers_need_two_two_one() -> None:
    policy = "survive: [region, zone, any two brokers]"
    for placed in solved(policy, THREE_REGIONS, partitions=30).partitions:
        counts = Counter(where(THREE_REGIONS, placed.voters, "region"))
        assert sorted(counts.values()) == [1, 2, 2]
        labels = {one.id: one.labels for one in THREE_REGIONS}
        placement = Placement([Replica(broker, labels[broker]) for broker in placed.voters])
        assert not broken_goals(decode_policy(policy).survive, placement)


def test_the_talks_constraints_place_two_two_one_as_they_say() -> None:
    policy = """
    rules: [{count: 5}]
    counts: [{label: region, value: c, count: 1}]
    spread: [{by: region, even: true, over: [a, b]}, {by: zone, max_per: 1}]
    """
    for placed in solved(policy, THREE_REGIONS, partitions=30).partitions:
        assert where(THREE_REGIONS, placed.voters, "region") == ["a", "a", "b", "b", "c"]


@pytest.mark.parametrize(
    ("survive", "regions", "voters"),
    [
        ("region", 3, 3),
        ("2 regions", 5, 5),
        ("zone", 3, 3),
        ("2 brokers", 3, 5),
        ("region and one more broker", 3, 9),
        ("region and one more broker", 4, 7),
        ("region and one more broker", 5, 5),
        ("[region, 3 brokers]", 3, 7),
    ],
)
def test_counts_are_derived_from_what_must_survive(survive: str, regions: int, voters: int) -> None:
    candidates = cluster(*[f"{r}/{z}" for r in "abcde"[:regions] for z in "1234"])
    (placed,) = solved(f"survive: {survive}", candidates).partitions
    assert len(placed.voters) == voters


def test_min_insync_replicas_ask_for_more_voters() -> None:
    candidates = cluster(*"abcdef")
    assert len(solved("survive: region", candidates).partitions[0].voters) == 3
    more = solved("survive: region", candidates, min_insync_replicas=3)
    assert len(more.partitions[0].voters) == 4


def test_a_rule_without_a_count_takes_what_the_others_leave() -> None:
    policy = """
    survive: 2 brokers
    rules: [{count: 2, where: [{label: region, op: in, values: [a]}]}, {role: voter}]
    """
    (placed,) = solved(policy, THREE_REGIONS).partitions
    assert len(placed.voters) == 5
    assert where(THREE_REGIONS, placed.voters, "region").count("a") >= 2


def test_replicas_of_one_rule_may_share_a_domain_while_another_rule_can_bring_the_rest() -> None:
    """Two of three regions in all: both replicas of the first rule have to be in one region."""
    policy = """
    rules:
      - {count: 2, where: [{label: region, op: in, values: [a]}]}
      - {count: 1, where: [{label: region, op: in, values: [b, c]}]}
    spread: [{by: region, min_distinct: 2}]
    """
    brokers = cluster("a", "a", "b", "b", "c", "c")
    (placed,) = solved(policy, brokers).partitions
    found = where(brokers, placed.voters, "region")
    assert found in (["a", "a", "b"], ["a", "a", "c"])


def test_confluents_example_is_placed_by_its_racks() -> None:
    policy = import_confluent(
        '{"version": 2, "replicas": [{"count": 2, "constraints": {"rack": "a"}}, '
        '{"count": 1, "constraints": {"rack": "b"}}], '
        '"observers": [{"count": 2, "constraints": {"rack": "b"}}]}'
    )
    found = solve(Request(policy=policy), THREE_REGIONS, partitions=20, rng=random.Random(3))
    assert isinstance(found, Solution)
    for placed in found.partitions:
        assert where(THREE_REGIONS, placed.voters, "region") == ["a", "a", "b"]
        assert where(THREE_REGIONS, placed.observers, "region") == ["b", "b"]
        assert len(set(placed.replicas)) == 5


def test_replicas_are_pinned_by_the_ids_of_brokers() -> None:
    policy = 'rules: [{count: 2, where: [{label: broker, op: in, values: ["3", "7"]}]}]'
    (placed,) = solved(policy, THREE_REGIONS).partitions
    assert sorted(placed.voters) == [3, 7]
    refusal = refused(policy.replace("count: 2", "count: 3"), THREE_REGIONS)
    assert "brokers 1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14 and 4 more are not among the " in str(
        refusal
    )
    assert refusal.blocking == ("replicas on the brokers [3, 7] only",)


def test_round_trips_between_regions_are_the_median_of_their_brokers() -> None:
    regions = {BrokerId(n): region for n, region in enumerate(["a", "a", "b", "b", ""])}
    pairs = {(0, 2): 30, (3, 0): 34, (1, 2): 90, (0, 1): 1, (0, 4): 7}
    trips = RoundTrips.measured(
        {(BrokerId(a), BrokerId(b)): ms for (a, b), ms in pairs.items()}, regions
    )
    assert [trips.between(*pair) for pair in ("ab", "ba", "aa", "bb", "ac")] == [34, 34, 1, 0, None]
    assert trips.longest_ms == 34


def test_residency_binds_observers_too_and_is_never_relaxed() -> None:
    policy = """
    rules: [{count: 1}, {role: observer, count: 9}]
    residency: {allow: [{label: region, op: in, values: [a]}]}
    """
    refusal = refused(policy, THREE_REGIONS)
    assert "11, 12, 13, 14, 15, 16, 17, 18: region is not in [a]" in str(refusal)
    assert refusal.nearest is None or '"residency"' in refusal.nearest.policy
    fewer = solved(policy.replace("9", "5"), THREE_REGIONS)
    assert set(where(THREE_REGIONS, fewer.partitions[0].replicas, "region")) == {"a"}


def test_leaders_are_where_they_are_preferred_and_replicas_follow() -> None:
    policy = """
    survive: region
    leaders: {prefer: [[{label: region, op: in, values: [c]}], [{label: zone, op: in, values: ["1"]}]]}
    """  # noqa: E501
    found = solved(policy, THREE_REGIONS, partitions=60)
    leaders = Counter(placed.voters[0] for placed in found.partitions)
    assert where(THREE_REGIONS, list(leaders), "region") == ["c"] * 6
    assert set(leaders.values()) == {10}


def test_leaders_do_not_go_where_nobody_is_up() -> None:
    down = [
        replace(one, state=BrokerState.DOWN) if one.labels.region == "c" else one
        for one in THREE_REGIONS
    ]
    request = Request(
        policy=decode_policy(
            "leaders: {prefer: [[{label: region, op: in, values: [c]}]]}\nrules: [{count: 15}]\n"
        ),
        takes_down_brokers=True,
    )
    found = solve(request, down, rng=random.Random(1))
    assert isinstance(found, Solution)
    assert where(down, found.partitions[0].voters[:1], "region") != ["c"]


def test_a_short_way_to_the_quorum_is_preferred_where_it_is_weighed() -> None:
    trips = RoundTrips({("a", "b"): 10, ("a", "c"): 90, ("b", "c"): 80})
    candidates = cluster(*"aabbcc")
    policy = decode_policy("nearest_quorum: 10\nspread: [{by: region, max_per: 2}]")
    for seed in range(5):
        request = Request(policy=policy, default_voters=3, round_trips=trips)
        found = solve(request, candidates, rng=random.Random(seed))
        assert isinstance(found, Solution)
        regions = where(candidates, found.partitions[0].voters, "region")
        assert Counter(regions).most_common(1)[0][1] == 2


def test_a_bound_of_the_way_to_the_quorum_spares_nearly_all_of_the_search() -> None:
    """Of eight regions five are taken one after the other, without a look at the other choices."""
    candidates, rng = grid(8, 2, 2, 2), random.Random(3)
    pairs = combinations(sorted({one.labels.region for one in candidates}), 2)
    trips = RoundTrips({pair: rng.randint(5, 200) for pair in pairs})
    policy = decode_policy("nearest_quorum: 10\nspread: [{by: region, max_per: 1}]")
    request = Request(policy=policy, default_voters=5, round_trips=trips)
    plain = make_plan(request, Universe(candidates), voters=5)
    without, found = (Search(one, orbits_of(one)).run() for one in (plain, with_floors(plain)))
    assert found.is_proved and without.is_proved and found.cost == without.cost
    assert found.nodes < 10 < 100 < without.nodes


def test_the_heaviest_preference_is_asked_first() -> None:
    """A descent that asked the lightest one first would seldom find a best placement."""
    where = "[{label: region, op: in, values: [c]}]"
    policy = f"rules: [{{count: 3, where: {where}, level: soft}}]"
    request = Request(policy=decode_policy(policy))
    weights = [one.weight for one in make_plan(request, Universe(THREE_REGIONS), voters=3).soft]
    assert len(weights) > 2 and weights == sorted(weights, reverse=True)


def test_a_missing_label_is_an_error_that_names_broker_and_label() -> None:
    refusal = refused("survive: zone", cluster("a/1", "a/2", "a"))
    assert "broker 3 has no label 'zone', which the policy needs" in str(refusal)
    leaving = candidate(3, "a", state=BrokerState.DECOMMISSIONING)
    assert "no label" not in str(refused("survive: zone", [*cluster("a/1", "a/2"), leaving]))


def test_a_refusal_says_what_blocks_why_each_broker_is_refused_and_what_could_be() -> None:
    refusal = refused("survive: region", cluster("a/1", "a/2", "b/1", "b/2"))
    assert refusal.blocking == ("survive 1 region",)
    assert refusal.lines() == [
        "cannot place 3 voters",
        "with replicas on brokers 1, 3, no other broker can take a voter",
        "brokers 2, 4: losing 1 region could then take 2 voters, but at most 1 may be lost",
        "conflict: survive 1 region",
        "this would help: one more broker in another region",
        "this would be possible: survive 1 zone instead of 1 region",
        'as a policy: {"survive":[{"zone":1}]}',
    ]
    assert str(refusal) == "; ".join(refusal.lines())
    assert refusal.nearest is not None
    solved(refusal.nearest.policy, cluster("a/1", "a/2", "b/1", "b/2"))


def test_what_could_be_is_as_near_as_the_labels_let_it_be() -> None:
    """Brokers that say no zone, rack or host still survive the loss of one of them."""
    refusal = refused("survive: region", cluster("a", "a", "b", "b"))
    assert refusal.nearest is not None
    assert refusal.nearest.changes == ("survive 1 broker instead of 1 region",)
    racks = cluster("a//1", "a//2", "a//3", "a//4")
    refusal = refused("survive: region", racks)
    assert refusal.nearest is not None
    assert refusal.nearest.changes == ("survive 1 rack instead of 1 region",)


@pytest.mark.parametrize(
    ("policy", "nearest"),
    [
        (
            "survive: region\nrules: [{count: 2}]",
            '{"survive":[{"region":1}],"rules":[{"count":3}]}',
        ),
        (
            "survive: 2 regions\nrules: [{count: 3}]",
            '{"survive":[{"region":2}],"rules":[{"count":5}]}',
        ),
        (
            "rules: [{role: observer, count: 1, spread: [{by: region, min_distinct: 2}]}]",
            '{"rules":[{"role":"observer","count":2,"spread":[{"by":"region","min_distinct":2}]}]}',
        ),
    ],
)
def test_what_could_be_has_more_replicas_rather_than_fewer_promises(
    policy: str, nearest: str
) -> None:
    refusal = refused(policy, cluster(*"abcde"))
    assert refusal.nearest is not None and refusal.nearest.policy == nearest


def test_what_could_be_is_a_policy_that_is_read() -> None:
    """No more voters and replicas than a policy may ask for."""
    for policy in (
        "survive: 7 regions\nrules: [{count: 14}]",
        "survive: 7 regions\nrules: [{count: 13}, {role: observer, count: 18}]",
    ):
        for _, more in relaxations(decode_policy(policy)):
            assert decode_policy(encode_policy(more)) == more


def test_a_refusal_names_the_broker_that_a_spread_excludes_among_just_enough_brokers() -> None:
    policy = "rules: [{count: 3, spread: [{by: region, max_per: 1}]}]"
    refusal = refused(policy, cluster("a", "a", "b"))
    assert refusal.is_proved and refusal.placed == (1,)
    assert "broker 2: region a has 1 of at most 1 replica" in str(refusal)


def test_only_constraints_that_clash_are_named() -> None:
    policy = """
    rules: [{count: 3, where: [{label: region, op: in, values: [a]}]}]
    spread: [{by: region, max_per: 1}, {by: zone, max_per: 2}]
    counts: [{label: zone, value: "1", count: 1}]
    """
    refusal = refused(policy, THREE_REGIONS)
    assert set(refusal.blocking) == {"where region=a", "spread by region: at most 1"}
    assert refusal.nearest is not None
    solved(refusal.nearest.policy, THREE_REGIONS)


def test_brokers_that_cannot_take_replicas_are_grouped_by_their_reason() -> None:
    candidates = [
        candidate(1, "a", state=BrokerState.DOWN),
        candidate(2, "b", state=BrokerState.MAINTENANCE),
        candidate(3, "c", disk_used_percent=91),
        candidate(4, "d", disk_used_percent=91),
        candidate(5, "e", replicas=7, replicas_max=7),
        candidate(6, "f", state=BrokerState.DECOMMISSIONING),
        candidate(7, "g"),
    ]
    refusal = refused("{}", candidates)
    assert [str(one) for one in refusal.refused] == [
        "brokers 3, 4: disk is 91 % used, of at most 85 %",
        "broker 1 is down",
        "broker 2 is in maintenance",
        "broker 5 holds 7 of at most 7 replicas",
        "broker 6 is being decommissioned",
    ]
    assert str(refusal).startswith("cannot place 3 voters; only broker 7 can take a voter; brokers")
    assert refusal.blocking == (
        "brokers that are not in service get no replica",
        "full brokers get no replica",
    )
    assert refusal.newcomers == "2 more brokers"


def test_too_many_replicas_to_acknowledge_are_refused_with_what_to_do() -> None:
    refusal = refused("survive: broker", cluster(*"abcdefghijklmnop"), min_insync_replicas=15)
    assert "no number of voters survives that much with min.insync.replicas=15" in str(refusal)


def test_brokers_fill_up_and_then_others_take_over() -> None:
    full = [replace(one, replicas_max=4) for one in cluster("a", "b", "c", "d")]
    found = solved("{}", full, partitions=5)
    counts = Counter(broker for placed in found.partitions for broker in placed.replicas)
    assert max(counts.values()) <= 4 and sum(counts.values()) == 15
    request = Request(policy=decode_policy("{}"))
    refusal = solve(request, full, partitions=6, rng=random.Random(1))
    assert isinstance(refusal, Refusal)
    assert "the brokers are full after 5 of them" in str(refusal)


def test_one_seed_one_answer_and_other_seeds_other_ties() -> None:
    answers = {
        solved("{}", grid(3, 2, 2, 3), partitions=5, seed=seed).partitions for seed in (1, 1)
    }
    assert len(answers) == 1
    answers = {
        solved("{}", grid(3, 2, 2, 3), partitions=5, seed=seed).partitions for seed in (1, 2)
    }
    assert len(answers) == 2


@pytest.mark.parametrize("policy", ["{}", "survive: [region, zone, any two brokers]"])
def test_replicas_and_leaders_of_many_partitions_are_even_within_five_percent(policy: str) -> None:
    candidates = grid(3, 3, 4, 2)
    found = solved(policy, candidates, partitions=1_000, default_voters=5)
    assert found.searches == 0, "the descent by load always finds the best cost here"
    replicas = Counter(broker for placed in found.partitions for broker in placed.replicas)
    leaders = Counter(placed.voters[0] for placed in found.partitions)
    for counts, total in ((replicas, 5_000), (leaders, 1_000)):
        even = total / len(candidates)
        values = [counts[one.id] for one in candidates]
        assert max(values) <= max(even * 1.05, even + 1) and min(values) >= min(
            even * 0.95, even - 1
        )


@pytest.mark.parametrize("survive", ["region", "region and one more broker", "2 regions"])
def test_two_hundred_regular_brokers_take_an_exact_search_a_few_steps(survive: str) -> None:
    candidates = grid(5, 4, 5, 2)
    _, found = best_plan(  # type: ignore[misc]
        Request(policy=decode_policy(f"survive: {survive}")), Universe(candidates)
    )
    assert found.is_proved and found.nodes <= 50


def test_brokers_are_interchangeable_where_all_that_hangs_on_their_regions_is_alike() -> None:
    universe = Universe(cluster("e/1", "e/2", "w/1", "w/2", "w/2", "w/2", "s/7", "s/8"))
    orbits = Orbits(universe, ("zone", "region"), [None] * 8)
    alike = [sorted(bits_of(orbits.of(bit, orbits.untouched))) for bit in range(8)]
    assert alike[0] == alike[1] == alike[6] == alike[7] == [0, 1, 6, 7]
    assert alike[2] == [2] and alike[3] == alike[4] == alike[5] == [3, 4, 5]
    touched = orbits.touch(orbits.untouched, 0)
    assert list(bits_of(orbits.of(1, touched))) == [1]
    assert list(bits_of(orbits.of(6, touched))) == [6, 7]
    told_apart = Orbits(universe, ("zone", "region"), [None] * 7 + ["other"])
    assert list(bits_of(told_apart.of(0, orbits.untouched))) == [0, 1]


def test_what_two_hundred_brokers_cannot_do_is_proved_in_few_steps() -> None:
    universe = Universe(grid(2, 5, 5, 4))
    request = Request(
        policy=decode_policy("spread: [{by: zone, max_per: 1}, {by: rack, max_per: 1}]")
    )
    plan = make_plan(request, universe, voters=11)
    found = Search(plan, orbits_of(plan)).run()
    assert found.seats is None and found.is_proved and found.nodes <= 200


CLUSTERS = [
    ["east", "east", "west", "west", "south"],
    ["east", "east", "east", "east", "west", "south"],
    [f"east/{zone}/{rack}" for zone in "ab" for rack in "xy" for _ in range(2)],
    ["east/a", "east/b", "west/a"],
    ["", "", "", "", ""],
    [f"r{n % 4}/z{n % 3}/k{n % 5}/h{n % 7}" for n in range(30)],
]


@pytest.mark.parametrize("paths", CLUSTERS, ids=range(len(CLUSTERS)))
@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_the_empty_policy_spreads_at_least_as_well_as_topics_without_policy(
    paths: list[str], factor: int
) -> None:
    candidates = cluster(*paths)
    if factor > len(candidates):
        return
    brokers = [make_broker(n, *path.split("/")) for n, path in enumerate(paths, start=1)]
    found = solved("distinct_host: false", candidates, partitions=60, default_voters=factor)
    old = place(
        brokers, partitions=60, replication_factor=factor, rng=random.Random(1), load=Load()
    )
    request = Request(policy=decode_policy("distinct_host: false"))
    plan = make_plan(request, Universe(candidates), voters=factor)

    def costs(placed: list[tuple[BrokerId, ...]]) -> list[int]:
        return [judge(plan, [(b, "voter") for b in one]).cost for one in placed]

    new = [placed.voters for placed in found.partitions]
    assert max(costs(new)) <= min(costs(old))

    def spread_of(counts: Counter[BrokerId]) -> int:
        values = [counts[one.id] for one in candidates]
        return max(values) - min(values)

    led = spread_of(Counter(one[0] for one in new))
    assert led <= spread_of(Counter(one[0] for one in old)) + 1


def test_brokers_that_are_down_come_last_where_they_may_be_taken() -> None:
    candidates = [
        replace(one, state=BrokerState.DOWN) if one.id in (1, 3) else one
        for one in cluster("e", "e", "w", "w", "s")
    ]
    request = Request(policy=decode_policy("{}"), default_voters=4, takes_down_brokers=True)
    found = solve(request, candidates, partitions=20, rng=random.Random(1))
    assert isinstance(found, Solution)
    for placed in found.partitions:
        assert {2, 4, 5} < set(placed.voters) and placed.voters[0] not in (1, 3)


def test_a_changed_label_is_a_violation_that_names_the_replicas() -> None:
    request = Request(policy=decode_policy("survive: region"))
    before = cluster("a", "b", "c", "c")
    plan = make_plan(request, Universe(before), voters=3)
    replicas = [(BrokerId(n), "voter") for n in (1, 2, 3)]
    assert judge(plan, replicas).is_right  # type: ignore[arg-type]
    moved = make_plan(request, Universe(cluster("a", "b", "b", "c")), voters=3)
    verdict = judge(moved, replicas)  # type: ignore[arg-type]
    assert [(one.constraint, one.brokers) for one in verdict.violations] == [
        ("survive 1 region", (2, 3))
    ]


def test_replicas_are_right_when_some_way_to_give_them_to_the_rules_is() -> None:
    policy = "rules: [{count: 1}, {count: 2, spread: [{by: region, max_per: 1}]}]"
    request = Request(policy=decode_policy(policy))
    plan = make_plan(request, Universe(cluster("b", "a", "a", "a")), voters=3)
    assert judge(plan, [(BrokerId(n), "voter") for n in (1, 2, 3)]).is_right
    assert not judge(plan, [(BrokerId(n), "voter") for n in (2, 3, 4)]).is_right


def test_a_repair_moves_what_is_wrong_and_nothing_else() -> None:
    request = Request(policy=decode_policy("survive: region"))
    candidates = cluster("a", "b", "b", "c")
    plan = make_plan(request, Universe(candidates), voters=3)
    replicas = [(BrokerId(n), "voter") for n in (1, 2, 3)]
    found = repair(plan, replicas)  # type: ignore[arg-type]
    assert found is not None
    assert found.coming == ((4, "voter"),) and len(found.leaving) == 1
    assert found.leaving[0] in (2, 3)
    right = repair(plan, [*found.kept, *found.coming])
    assert right is not None and not right.coming and not right.leaving


def test_a_repair_moves_away_from_the_fuller_of_two_brokers_to_the_emptiest() -> None:
    request = Request(policy=decode_policy("survive: region"))
    loads = [1, 9, 5, 7, 2, 7]
    candidates = [
        replace(one, replicas=held)
        for one, held in zip(cluster("a", "b", "b", "c", "c", "c"), loads, strict=True)
    ]
    plan = make_plan(request, Universe(candidates), voters=3)
    found = repair(plan, [(BrokerId(n), "voter") for n in (1, 2, 3)])
    assert found is not None
    assert found.leaving == (2,) and found.coming == ((5, "voter"),)


def test_a_broker_that_went_is_replaced() -> None:
    request = Request(policy=decode_policy("rules: [{count: 3}]"))
    plan = make_plan(request, Universe(cluster("a", "b", "c", "c")), voters=3)
    found = repair(plan, [(BrokerId(n), "voter") for n in (1, 2, 9)])
    assert found is not None
    assert found.leaving == (9,) and found.coming in (((3, "voter"),), ((4, "voter"),))


def test_given_counts_that_do_not_survive_are_refused() -> None:
    refusal = refused("survive: region\nrules: [{count: 2}]", cluster(*"abc"))
    assert refusal.blocking == ("survive 1 region",)
    solved("survive: region\nrules: [{count: 3}]", cluster(*"abc"))


@pytest.mark.parametrize(
    ("residency", "labels", "reason"),
    [
        ("allow: [{label: region, op: in, values: [a]}]", Labels("a"), None),
        ("allow: [{label: region, op: in, values: [a]}]", Labels("b"), "region is not in [a]"),
        ("allow: [{label: region, op: in, values: [a]}]", Labels(), "has no label region"),
        ("deny: [{label: region, op: in, values: [a]}]", Labels("a"), "region is in [a]"),
        ("deny: [{label: region, op: in, values: [a]}]", Labels(), "has no label region"),
        ("deny: [{label: c, op: exists}]", Labels(free=(("c", "x"),)), "has the label c"),
        ("deny: [{label: cloud, op: notExists}]", Labels("a"), "has no label cloud"),
        ("deny: [{label: region, op: notIn, values: [a]}]", Labels("b"), "region is not in [a]"),
    ],
)
def test_residency_binds_whatever_has_labels(
    residency: str, labels: Labels, reason: str | None
) -> None:
    policy = decode_policy(f"residency: {{{residency}}}")
    found = banned_by(policy.residency, labels)
    assert (None if found is None else str(found)) == reason


def test_lost_surplus_and_missing_replicas_are_told() -> None:
    request = Request(policy=decode_policy("rules: [{count: 2}, {role: observer, count: 1}]"))
    plan = make_plan(request, Universe(cluster("a", "b", "c")), voters=2)
    verdict = judge(plan, [(BrokerId(n), "voter") for n in (1, 2, 3, 9)])  # type: ignore[misc]
    assert verdict.unknown == (9,) and verdict.surplus == (3,) and verdict.missing == {1: 1}


def test_an_answer_names_voters_first_with_the_leader_in_front() -> None:
    placed = Placed(voters=(BrokerId(2), BrokerId(1)), observers=(BrokerId(3),))
    assert placed.replicas == (2, 1, 3)


def test_two_brokers_of_one_host_do_not_stand_for_two_of_which_no_host_is_said() -> None:
    """These may hold two replicas of a partition."""
    universe = Universe(cluster("a///x", "a///x", "a", "a"))
    request = Request(policy=decode_policy("rules: [{count: 2}]"))
    kinds = orbits_of(make_plan(request, universe, voters=2)).kinds
    assert kinds[0] == kinds[1] != kinds[2] == kinds[3]
