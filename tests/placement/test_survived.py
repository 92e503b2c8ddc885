"""What survives is told in a line, as a table and by domains: all of it says the same (decision
0026)."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st
from tests.placement.test_outcomes import HALVES, THREE, of_regions, seeds
from tests.placement.test_survival import placed, texts

from strandline.model.ids import BrokerId
from strandline.placement.explain.exposure import exposures
from strandline.placement.explain.outcomes import outcomes
from strandline.placement.policy.document import Goal, Promotion
from strandline.placement.policy.goals import parse_goal
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.regions import Regions
from strandline.placement.survival.replicas import Placement, Replica
from strandline.placement.survival.report import Survived, implies, survival_of, survived
from strandline.placement.topology.universe import Candidate, Universe

PATHS = ("a/1", "a/2", "b/1", "b/2", "c/1")
PROMOTIONS: tuple[Promotion, ...] = ("", "under-min-isr", "under-replicated", "region-lost")
GOALS = ("2 regions and 1 broker", "1 region and 1 zone and 1 broker", "2 zones", "3 brokers")


def test_an_appointed_half_is_counted_as_what_survives() -> None:
    halves, rules = placed(*HALVES), Rules(shrinks=True, controllers=seeds("a", "b", "c"))
    found = survived([halves], rules)
    assert (texts(found.writes), texts(found.data)) == (
        ["1 region", "2 zones"],
        ["1 region", "2 zones"],
    )
    assert texts(survived([halves], Rules()).writes) == ["1 zone"]
    # With both of its voters in one half, the controller is lost with that half.
    lost = survived([halves], Rules(shrinks=True, controllers=seeds("a", "a", "b")))
    assert texts(lost.writes) == ["2 zones"]
    assert texts(lost.data) == ["1 region", "2 zones"]


def test_observers_that_stand_in_are_counted() -> None:
    rules = Rules(3, shrinks=True, promotion="under-min-isr", controllers=seeds("a", "b", "c"))
    third = placed(*HALVES, observers=("c/1",), min_insync_replicas=3)
    assert texts(survived([third], rules).writes) == ["1 region", "2 zones"]
    beside = placed(*HALVES, observers=("a/1",), min_insync_replicas=3)
    assert texts(survived([beside], rules).writes) == ["1 zone", "2 brokers"]
    survival = survival_of(third, rules)
    stops = {one.level: (one.size, one.sets) for one in survival.stopping}
    assert stops["region"] == (2, (("a", "b"), ("a", "c"), ("b", "c")))
    assert {one.level: one.writes for one in survival.levels}["region"] == 1


def test_a_smaller_loss_that_stops_what_a_region_does_not_is_named() -> None:
    """By region-lost nothing stands in for one broker of a region that is otherwise up."""
    placement = placed(*THREE, observers=("d",), min_insync_replicas=3)
    regions = of_regions(placement, *THREE)
    found = survived([placement], Rules(3, True, (), "region-lost", regions))
    assert (texts(found.writes), texts(found.writes_but_not)) == (["1 region"], ["1 broker"])


def test_what_survives_from_now_counts_what_is_lost() -> None:
    rules = Rules(shrinks=True, controllers=seeds("a", "b", "c"))
    three = placed(*THREE)
    assert texts(survived([three], rules).writes) == ["1 region"]
    one_down = three.at_present(down=[BrokerId(3)])
    assert survived([one_down], rules) == Survived()
    # Once it has left the voters, the controller appoints the last one.
    two = Placement(three.replicas[:2]).at_present(down=[BrokerId(3)])
    assert texts(survived([two], rules).writes) == ["1 region"]
    # But not without a region, where the controller has lost another one of its voters.
    alone = two.at_present(down=[BrokerId(3), BrokerId(103)])
    assert texts(survived([alone], rules).writes) == ["1 broker"]
    behind = placed(*PATHS).at_present(behind=[BrokerId(1)])
    assert texts(survived([behind], Rules()).writes) == ["1 zone"]
    (table,) = [one for one in outcomes([(behind, (0,))], Rules()) if one.loss == "2 brokers"]
    assert (table.acts_alone, table.left, table.back) == (False, 2, 1)


def told_by(found: Survived, goal: Goal) -> tuple[bool, bool]:
    """(whether writes go on, whether data is kept), as the line says."""
    writes = any(implies(one, goal) for one in found.writes) and goal not in found.writes_but_not
    return writes, any(implies(one, goal) for one in found.data)


def _regions(placement: Placement, controllers: Sequence[Replica]) -> Regions:
    brokers = [*placement.replicas, *controllers]
    counts = Counter(one.labels.region for one in brokers)
    return Regions(brokers, {one: 2 for one, count in counts.items() if count > 1})


_paths = st.lists(st.sampled_from(PATHS), min_size=1, max_size=5)
_some = st.sets(st.integers(1, 8), max_size=3)


@given(
    kinds=st.lists(_paths, min_size=1, max_size=2),
    observers=st.lists(st.sampled_from(PATHS), max_size=2),
    controllers=st.lists(st.sampled_from("abc"), max_size=3),
    least=st.integers(1, 3),
    shrinks=st.booleans(),
    promotion=st.sampled_from(PROMOTIONS),
    down=_some,
    behind=_some,
    goal=st.sampled_from(GOALS),
)
@example([list(HALVES)], [], ["a", "b", "c"], 1, True, "", set(), set(), "2 zones")
def test_the_line_and_the_table_never_disagree(
    kinds: list[list[str]],
    observers: list[str],
    controllers: list[str],
    least: int,
    shrinks: bool,
    promotion: Promotion,
    down: set[int],
    behind: set[int],
    goal: str,
) -> None:
    placements = [
        placed(*paths, observers=tuple(observers), min_insync_replicas=least).at_present(
            down=[*map(BrokerId, down)], behind=[*map(BrokerId, behind - down)]
        )
        for paths in kinds
    ]
    placements = [one for one in placements if not one.has_stopped]
    if not placements:
        return
    voters = seeds(*controllers)
    rules = Rules(least, shrinks, voters, promotion, _regions(placements[0], voters))
    wanted = [parse_goal(goal)]
    line = survived(placements, rules, goals=wanted)
    table = outcomes(
        [(one, (number,)) for number, one in enumerate(placements)], rules, goals=wanted
    )
    for row in table:
        if row.is_cut:
            assert row.keeps_data, "those that are cut off live"
        else:
            assert told_by(line, row.goal) == (row.acts_alone, row.keeps_data), row.loss
    closely = survival_of(placements[0], rules)
    if len(placements) == 1:
        rows = {row.loss: row for row in table if not row.is_cut}
        for level, stop, lose in zip(closely.levels, closely.stopping, closely.losing, strict=True):
            row = rows.get(f"1 {level.level}")
            if row is not None:
                assert (row.acts_alone, row.keeps_data) == (stop.size != 1, lose.size != 1)
                assert (level.writes > 0, level.data > 0) == (row.acts_alone, row.keeps_data)


@given(
    paths=_paths, observers=st.lists(st.sampled_from(PATHS), max_size=2),
    least=st.integers(1, 3), shrinks=st.booleans(), down=_some,
)  # fmt: skip
def test_the_domains_that_would_stop_a_partition_are_those_of_the_table(
    paths: list[str],
    observers: list[str],
    least: int,
    shrinks: bool,
    down: set[int],
) -> None:
    placement = placed(*paths, observers=tuple(observers), min_insync_replicas=least).at_present(
        down=[*map(BrokerId, down)]
    )
    if placement.has_stopped:
        return
    rules = Rules(least, shrinks, (), "under-min-isr")
    universe = Universe(Candidate(id=one.broker, labels=one.labels) for one in placement.replicas)
    found = exposures(universe, [(placement, rules, 1)])
    brokers = next(one for one in outcomes([(placement, (0,))], rules) if one.loss == "1 broker")
    single = [one for one in found if len(one.brokers) == 1]
    assert any(one.stops for one in single) == (not brokers.acts_alone)
    assert any(one.loses for one in single) == (not brokers.keeps_data)
