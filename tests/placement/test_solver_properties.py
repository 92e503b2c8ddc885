"""The solver against brute force: what it returns holds and is best, what it refuses is not there.

Small clusters, and policies of every family. Design section 7; decision 0008."""

import random
from collections.abc import Sequence

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.placement.exhaustive import right_seats
from tests.placement.solver_world import assignments, holds, rules_of

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.checks import check_policy
from strandline.placement.policy.document import (
    Goal,
    LabelCount,
    Leaders,
    Policy,
    Residency,
    Role,
    Rule,
    Selector,
    Spread,
)
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.floors import with_floors
from strandline.placement.solver.judge import judge
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.repair import repair
from strandline.placement.solver.request import Request
from strandline.placement.solver.search import Search, orbits_of
from strandline.placement.solver.solve import Refusal, Solution, solve
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate, Universe, bits_of

REGIONS, ZONES, HOSTS, POWERS = ("e", "w", "s"), ("1", "2"), ("", "x", "y"), ("", "p", "q")
TRIPS = RoundTrips({("e", "w"): 30, ("e", "s"): 80, ("w", "s"): 90})

_labels = st.builds(
    Labels,
    region=st.sampled_from(REGIONS),
    zone=st.sampled_from(ZONES),
    host=st.sampled_from(HOSTS),
    upgrade_domain=st.sampled_from(("0", "1")),
    free=st.sampled_from(POWERS).map(lambda p: (("power", p),) if p else ()),
)


@st.composite
def _candidates(draw: st.DrawFn, most: int = 6) -> list[Candidate]:
    count = draw(st.integers(1, most))
    return [
        Candidate(
            id=BrokerId(number),
            labels=draw(_labels),
            state=draw(st.sampled_from([BrokerState.ACTIVE] * 9 + [BrokerState.DOWN])),
            disk_used_percent=draw(st.sampled_from([10] * 9 + [90])),
        )
        for number in range(count)
    ]


_selectors = st.one_of(
    st.builds(
        Selector,
        st.sampled_from(["region", "zone"]),
        st.sampled_from(["in", "notIn"]),
        st.sampled_from([("e",), ("e", "w"), ("1",)]),
    ),
    st.builds(Selector, st.just("power"), st.sampled_from(["exists", "notExists"])),
    st.just(Selector("broker", "notIn", ("0",))),
)
_where = st.lists(_selectors, max_size=1).map(tuple)
_spreads = st.one_of(
    st.builds(
        Spread,
        st.sampled_from(["region", "zone", "upgrade_domain"]),
        max_per=st.sampled_from([1, 2, "minority"]),
    ),
    st.builds(Spread, st.sampled_from(["region", "zone"]), min_distinct=st.integers(1, 3)),
    st.builds(Spread, st.sampled_from(["region", "upgrade_domain"]), even=st.just(True)),
    st.just(Spread("region", even=True, over=("e", "w"))),
    st.builds(Spread, st.sampled_from(["zone", "upgrade_domain"]), level=st.just("soft")),
)
_goals = st.sampled_from(
    [Goal(region=1), Goal(zone=1), Goal(broker=1), Goal(region=1, broker=1), Goal(zone=2),
     Goal(upgrade_domain=1), Goal(zone=1, upgrade_domain=1), Goal(broker=2), Goal(host=1)]
)  # fmt: skip


@st.composite
def _policies(draw: st.DrawFn) -> Policy:
    def rule(role: str, count: int | None) -> Rule:
        where = draw(_where)
        is_soft = bool(where) and draw(st.booleans())
        return Rule(
            role=role,  # type: ignore[arg-type]
            count=count,
            where=where,
            spread=tuple(draw(st.lists(_spreads, max_size=1))),
            level="soft" if is_soft else "hard",
            weight=draw(st.integers(1, 5)) if is_soft else 1,
        )

    rules = [rule("voter", draw(st.integers(1, 3))) for _ in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        rules.append(rule("voter", None))
    if draw(st.booleans()):
        rules.append(rule("observer", 1))
    policy = Policy(
        survive=tuple(draw(st.lists(_goals, max_size=2, unique=True))),
        rules=tuple(rules),
        spread=tuple(draw(st.lists(_spreads, max_size=1))),
        counts=draw(st.sampled_from([(), (), (), (LabelCount("region", "s", 1),)])),
        leaders=draw(st.sampled_from([Leaders(), Leaders(((Selector("zone", "in", ("2",)),),))])),
        residency=draw(
            st.sampled_from([Residency(), Residency(deny=(Selector("region", "in", ("s",)),))])
        ),
        distinct_host=draw(st.booleans()),
        nearest_quorum=draw(st.sampled_from([0, 0, 3])),
    )
    check_policy(policy)
    return policy


_requests = st.builds(
    Request,
    policy=_policies(),
    min_insync_replicas=st.integers(1, 3),
    default_voters=st.integers(1, 5),
    round_trips=st.just(TRIPS),
)


def voters_for(request: Request, draw: int) -> int:
    """A number of voters to place: the given one, or any where it is to be derived."""
    counts = [rule.count for rule in request.policy.voter_rules()]
    given = sum(count or 0 for count in counts)
    return given + draw if None in counts else given


def check_against_brute_force(request: Request, candidates: list[Candidate], voters: int) -> None:
    """The search finds a best placement, and none only where there is none."""
    universe = Universe(candidates)
    plan = with_floors(make_plan(request, universe, voters=voters))
    found = Search(plan, orbits_of(plan)).run()
    assert found.is_proved
    costs = [plan.cost(seats) for seats in right_seats(request, plan, candidates, voters=voters)]
    assert (found.seats is None) == (not costs)
    if found.seats is not None:
        assert found.cost == min(costs)
        rules = rules_of(request.policy, voters)
        by_group = dict(enumerate(plan.shape.groups))
        replicas = [
            (universe.candidates[bit], rules[n][0])
            for bit, n in sorted(found.seats, key=lambda seat: seat[1])
        ]
        assert [by_group[n].count for n in by_group] == [count for _, count in rules]
        assert holds(request, replicas, candidates)


@st.composite
def _tight(draw: st.DrawFn) -> tuple[Request, list[Candidate], int]:
    """Labels that cross each other and spreads by several of them: who goes first is often wrong.

    Costs of the user's that pull against each other and the default ones."""
    labels = st.builds(
        Labels,
        region=st.sampled_from(REGIONS),
        zone=st.sampled_from(ZONES),
        rack=st.sampled_from(("", "k")),
        upgrade_domain=st.sampled_from(("0", "1", "2")),
        free=st.sampled_from(("p", "q", "r")).map(lambda power: (("power", power),)),
    )
    count = draw(st.integers(4, 8))
    candidates = [Candidate(id=BrokerId(n), labels=draw(labels)) for n in range(count)]
    hard = [
        Spread("upgrade_domain", max_per=1),
        Spread("power", max_per=1),
        Spread("zone", max_per=1),
        Spread("region", max_per=2),
        Spread("region", min_distinct=2),
        Spread("power", even=True),
        Spread("upgrade_domain", even=True),
        Spread("upgrade_domain", even=True, over=("0", "1")),
        Spread("zone", min_distinct=3),
    ]
    weights = st.integers(1, 30)
    soft = [
        Spread(label, level="soft", weight=draw(weights))
        for label in ("power", "upgrade_domain", "zone")
    ]
    chosen = draw(st.lists(st.sampled_from(hard), max_size=2, unique=True))
    chosen += draw(st.lists(st.sampled_from(soft), max_size=2, unique=True))
    wheres = [
        Selector("power", "in", ("p",)),
        Selector("region", "in", ("e", "s")),
        Selector("upgrade_domain", "notIn", ("0",)),
    ]
    voters = draw(st.integers(2, 4))
    rules = []
    if voters > 2 and draw(st.booleans()):
        own = draw(st.lists(st.sampled_from(hard[:2]), max_size=1))
        where = (draw(st.sampled_from(wheres)),)
        is_soft = draw(st.booleans())
        rules = [
            Rule(
                count=2, where=where, spread=tuple(own), level="soft" if is_soft else "hard",
                weight=draw(weights) if is_soft else 1,
            ),
            Rule(where=(draw(st.sampled_from(wheres)),), level="soft", weight=draw(weights)),
        ]  # fmt: skip
    policy = Policy(
        survive=tuple(draw(st.lists(_goals, max_size=1))),
        rules=tuple(rules),
        spread=tuple(chosen),
        leaders=draw(st.sampled_from([Leaders(), Leaders(((wheres[0],), (wheres[1],)))])),
        nearest_quorum=draw(st.sampled_from([0, 0, 7])),
    )
    check_policy(policy)
    return Request(policy=policy, round_trips=TRIPS), candidates, voters


@settings(max_examples=300, deadline=None)
@given(_tight())
@example(
    (
        Request(policy=Policy(survive=(Goal(host=1),))),
        [Candidate(id=BrokerId(n), labels=Labels(region="e", zone=str(n))) for n in range(4)],
        3,
    )
)
def test_the_search_is_exact_where_greed_is_wrong(
    case: tuple[Request, list[Candidate], int],
) -> None:
    check_against_brute_force(*case)


@settings(max_examples=200, deadline=None)
@given(_tight(), st.integers(0, 9))
def test_what_is_good_enough_costs_no_more_than_was_asked_for(
    case: tuple[Request, list[Candidate], int], seed: int
) -> None:
    request, candidates, voters = case
    plan = with_floors(make_plan(request, Universe(candidates), voters=voters))
    orbits = orbits_of(plan)
    best = Search(plan, orbits).run()
    chance = random.Random(seed)
    for limit in (best.cost - 1, best.cost, best.cost * 2 + 1):
        found = Search(
            plan,
            orbits,
            good_enough=limit,
            pick=lambda mask: chance.choice(list(bits_of(mask))),
        ).run()
        assert found.is_proved
        assert (found.seats is not None) == (best.seats is not None and limit >= best.cost)
        assert found.seats is None or found.cost == plan.cost(found.seats) <= limit


def test_who_may_lead_tells_brokers_of_one_region_apart() -> None:
    """The way of a write is counted from the preferred leader: a bound took another one for it."""
    policy = Policy(
        spread=(
            Spread("region", max_per=2),
            Spread("power", level="soft", weight=1),
            Spread("upgrade_domain", level="soft", weight=1),
        ),
        leaders=Leaders(
            ((Selector("power", "in", ("p",)),), (Selector("region", "in", ("e", "s")),))
        ),
        nearest_quorum=7,
    )
    check_policy(policy)
    places = (("e", "q", "0"), ("s", "p", "0"), ("e", "p", "0"), ("e", "r", "1"), ("w", "q", "0"))
    candidates = [
        Candidate(
            id=BrokerId(n),
            labels=Labels(region=region, upgrade_domain=domain, free=(("power", power),)),
        )
        for n, (region, power, domain) in enumerate(places)
    ]
    check_against_brute_force(Request(policy=policy, round_trips=TRIPS), candidates, 4)


@settings(max_examples=150, deadline=None)
@given(_requests, _candidates(), st.integers(1, 4))
def test_the_search_finds_the_best_placement_and_only_refuses_where_there_is_none(
    request: Request, candidates: list[Candidate], draw: int
) -> None:
    voters = voters_for(request, draw)
    assume(voters <= 5)
    check_against_brute_force(request, candidates, voters)


def misplaced(
    data: st.DataObject, rules: Sequence[tuple[Rule, int]], candidates: list[Candidate]
) -> dict[BrokerId, Role]:
    """Replicas by these rules, wherever they are: {broker: role}."""
    # With a spread, which replica is whose is left as it is, so a repair may take more.
    assume(not any(rule.spread for rule, _ in rules))
    roles = [rule.role for rule, count in rules for _ in range(count)]
    chosen = data.draw(st.permutations(candidates))
    return {one.id: role for one, role in zip(chosen, roles, strict=False)}


@settings(max_examples=100, deadline=None)
@given(_requests, _candidates(5), st.integers(1, 3), st.data())
def test_a_repair_replaces_as_few_replicas_as_can_be(
    request: Request, candidates: list[Candidate], draw: int, data: st.DataObject
) -> None:
    voters = voters_for(request, draw)
    rules = rules_of(request.policy, voters)
    before = misplaced(data, rules, candidates)
    plan = make_plan(request, Universe(candidates), voters=voters)
    fewest = min(
        (
            sum(before.get(one.id) != rule.role for one, rule in assignment)
            for assignment in assignments(rules, candidates)
            if holds(request, assignment, candidates)
        ),
        default=None,
    )
    found = repair(plan, list(before.items()))
    assert (found is None) == (fewest is None)
    if found is not None:
        assert len(found.coming) == fewest
        assert judge(plan, found.kept + found.coming).is_right
        assert set(found.leaving) == set(before) - {broker for broker, _ in found.kept}


@settings(max_examples=100, deadline=None)
@given(_requests, _candidates(5), st.integers(1, 3), st.data())
def test_a_repair_brings_replicas_only_to_those_who_may_be_given_some(
    request: Request, candidates: list[Candidate], draw: int, data: st.DataObject
) -> None:
    voters = voters_for(request, draw)
    rules = rules_of(request.policy, voters)
    before = misplaced(data, rules, candidates)
    may_come = data.draw(st.sets(st.sampled_from([one.id for one in candidates])))
    counts = [
        len(coming)
        for assignment in assignments(rules, candidates)
        if holds(request, assignment, candidates)
        and (coming := {one.id for one, rule in assignment if before.get(one.id) != rule.role})
        <= may_come
    ]
    universe = Universe(candidates)
    plan = make_plan(request, universe, voters=voters)
    bits = universe.mask(universe.index[one] for one in may_come)
    found = repair(plan, list(before.items()), may_come=bits)
    assert (found is None) == (not counts)
    if found is not None:
        assert {broker for broker, _ in found.coming} <= may_come
        assert len(found.coming) == min(counts)
        assert judge(plan, found.kept + found.coming).is_right
    bounded = repair(plan, list(before.items()), may_come=bits, leaving_max=1)
    assert bounded is None or len(bounded.leaving) <= 1


_nested = st.builds(
    Labels,
    region=st.sampled_from(("e", "w")),
    zone=st.sampled_from(("1", "2")),
    rack=st.sampled_from(("k", "l")),
)
_nested_policies = st.sampled_from(
    ["{}", "survive: zone", "spread: [{by: rack, max_per: 1}]", "spread: [{by: zone, even: true}]",
     "survive: region and one more broker", "spread: [{by: region, min_distinct: 2}]",
     "rules: [{where: [{label: rack, op: in, values: [k]}], level: soft, weight: 2}]"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(_nested, min_size=4, max_size=9), _nested_policies, st.data())
def test_interchangeable_brokers_lead_to_placements_of_the_same_cost(
    labels: list[Labels], text: str, data: st.DataObject
) -> None:
    candidates = [Candidate(id=BrokerId(n), labels=one) for n, one in enumerate(labels)]
    universe = Universe(candidates)
    plan = make_plan(Request(policy=decode_policy(text)), universe, voters=4)
    orbits = orbits_of(plan)
    alone = Orbits(universe, (), range(len(candidates)))
    order = data.draw(st.permutations(range(len(candidates))))
    taken, bit = order[: data.draw(st.integers(0, 2))], order[-1]
    seats: list[tuple[int, int]] = []
    touched = orbits.untouched

    def is_eligible(other: int) -> bool:
        return all(one.eligible(seats, 0) >> other & 1 for one in plan.hard)

    for one in taken:
        if is_eligible(one):
            seats.append((one, 0))
            touched = orbits.touch(touched, one)

    def best(other: int) -> tuple[bool, int]:
        if not is_eligible(other):
            return False, 0
        found = Search(plan, alone, first=[*seats, (other, 0)]).run()
        return found.seats is not None, found.cost

    orbit = orbits.of(bit, touched) & ~universe.mask(bit for bit, _ in seats)
    assert orbit >> bit & 1
    assert len({best(other) for other in bits_of(orbit)}) == 1


@settings(max_examples=300, deadline=None)
@given(_requests, _candidates(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_an_image_of_a_placement_is_as_right_and_costs_the_same(
    request: Request, candidates: list[Candidate], draw: int, chance: random.Random
) -> None:
    voters = voters_for(request, draw)
    universe = Universe(candidates)
    plan = make_plan(request, universe, voters=voters)
    orbits = orbits_of(plan)
    found = Search(plan, orbits).run()
    if found.seats is None:
        return
    images: dict[int, int] = {}
    touched = orbits.untouched
    for bit, _ in found.seats:
        mask = orbits.images(bit, touched, images) & ~universe.mask(images.values())
        images[bit] = chance.choice(list(bits_of(mask)))
        touched = orbits.touch(touched, bit)
    image = [(images[bit], group) for bit, group in found.seats]
    assert plan.cost(image) == found.cost
    assert not [one for each in (*plan.static, *plan.hard) for one in each.violations(image)]


@settings(max_examples=80, deadline=None)
@given(_requests, _candidates(), st.randoms(use_true_random=False), st.integers(0, 9))
def test_what_is_solved_is_right_and_the_order_of_the_brokers_does_not_matter(
    request: Request, candidates: list[Candidate], chance: random.Random, seed: int
) -> None:
    solved = solve(request, candidates, partitions=3, rng=random.Random(seed), explains=False)
    shuffled = chance.sample(candidates, len(candidates))
    again = solve(request, shuffled, partitions=3, rng=random.Random(seed), explains=False)
    assert solved == again
    if isinstance(solved, Refusal):
        assert str(solved) and "\n" not in str(solved)
        return
    universe = Universe(candidates)
    for placed in solved.partitions:
        plan = make_plan(request, universe, voters=len(placed.voters))
        verdict = judge(
            plan,
            [(one, "voter") for one in placed.voters]
            + [(one, "observer") for one in placed.observers],
        )
        assert verdict.is_right, verdict
        assert verdict.cost >= solved.cost
        is_one_rule_a_role = len(plan.shape.groups) == 1
        assert not is_one_rule_a_role or verdict.cost == solved.cost


@settings(max_examples=80, deadline=None)
@given(_requests, _candidates(5), st.randoms(use_true_random=False))
def test_other_ids_for_the_same_brokers_change_nothing_but_ties(
    request: Request, candidates: list[Candidate], chance: random.Random
) -> None:
    labels = [s.label for rule in request.policy.rules for s in rule.where]
    assume("broker" not in labels)
    ids = chance.sample(range(100), len(candidates))
    renamed = [
        Candidate(
            id=BrokerId(number), labels=one.labels, state=one.state,
            disk_used_percent=one.disk_used_percent,
        )
        for number, one in zip(ids, candidates, strict=True)
    ]  # fmt: skip
    first = solve(request, candidates, rng=random.Random(1), explains=False)
    other = solve(request, renamed, rng=random.Random(1), explains=False)
    assert type(first) is type(other)
    if isinstance(first, Solution) and isinstance(other, Solution):
        assert first.cost == other.cost
        assert len(first.partitions[0].voters) == len(other.partitions[0].voters)


@settings(max_examples=80, deadline=None)
@given(_requests, _candidates(5), st.integers(1, 3), st.data())
def test_judging_finds_a_violation_exactly_where_a_constraint_does_not_hold(
    request: Request, candidates: list[Candidate], draw: int, data: st.DataObject
) -> None:
    voters = voters_for(request, draw)
    rules = rules_of(request.policy, voters)
    wanted = sum(count for _, count in rules)
    assume(wanted <= len(candidates))
    chosen = data.draw(st.permutations(candidates))[:wanted]
    roles = [rule.role for rule, count in rules for _ in range(count)]
    plan = make_plan(request, Universe(candidates), voters=voters)
    verdict = judge(plan, [(one.id, role) for one, role in zip(chosen, roles, strict=True)])
    by_role = {
        role: [one for one, of in zip(chosen, roles, strict=True) if of == role]
        for role in ("voter", "observer")
    }
    voter_rules = [(rule, count) for rule, count in rules if rule.role == "voter"]
    observer_rules = [(rule, count) for rule, count in rules if rule.role == "observer"]
    could_be_right = any(
        holds(request, left + right, candidates)
        for left in assignments(voter_rules, by_role["voter"])
        for right in assignments(observer_rules, by_role["observer"])
    )
    assert verdict.is_right == could_be_right
