"""What is varied about scenarios: drawn for some seeds; all others stay as they were."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.simulation.faults.kinds import ANSWER_FAULTS, FAULT_KINDS, ROT_FAULTS
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.variations import DISTRUST, OTHER_LOSSES, draw, with_marks

SEEDS = range(1, 400)
FEW = 5


def varied(holds: Callable[[Scenario], object], count: int = 400) -> list[Scenario]:
    return [one for one in map(draw, SEEDS) if holds(one)][:count]


def is_distrusted(scenario: Scenario) -> bool:
    return bool(scenario.fault_weights.keys() & set(DISTRUST))


def is_cached(scenario: Scenario) -> bool:
    return scenario.log.write_caching


def deletes(scenario: Scenario) -> bool:
    return scenario.delete_interval_ms > 0


def moves(scenario: Scenario) -> bool:
    return scenario.move_interval_ms > 0


def deletes_keys(scenario: Scenario) -> bool:
    return scenario.tombstone_ratio > 0


def rots(scenario: Scenario) -> bool:
    return bool(scenario.fault_weights.keys() & set(ROT_FAULTS))


def scrubs(scenario: Scenario) -> bool:
    return scenario.scrub_bytes_per_s > 0


def loses_answers(scenario: Scenario) -> bool:
    return bool(scenario.answer_faults)


def test_answers_are_lost_beside_all_other_faults() -> None:
    scenarios = varied(loses_answers)
    assert len(SEEDS) / 8 < len(scenarios) < len(SEEDS) / 3
    assert any(one.has_brokers for one in scenarios)
    assert {fault.kind for one in scenarios for fault in one.answer_faults} == set(ANSWER_FAULTS)
    for one in scenarios:
        planned = one.plan_faults()
        others = replace(one, answer_faults=()).plan_faults()
        assert [fault for fault in planned if fault.kind not in ANSWER_FAULTS] == [*others]
        assert [*planned] == sorted(planned, key=lambda fault: fault.at_ms)
    assert replace(scenarios[0], faults=()).plan_faults() == ()


def test_replicas_are_moved_where_no_disk_is_lost() -> None:
    scenarios = varied(moves)
    assert len(scenarios) > 10
    for one in scenarios:
        assert one.has_brokers and not one.log.write_caching
        assert not one.fault_weights.keys() & {*OTHER_LOSSES, *DISTRUST}


def usual(seed: int) -> Scenario:
    return with_marks(Scenario.draw(seed))


def test_most_seeds_are_what_they_were() -> None:
    """But for lost answers, which leave all other faults what and when they were."""
    same = [seed for seed in SEEDS if replace(draw(seed), answer_faults=()) == usual(seed)]
    assert len(same) > len(SEEDS) / 2


def test_deletions_are_drawn_where_there_can_be_any() -> None:
    scenarios = varied(deletes)
    assert len(scenarios) > 10
    assert all(
        one.has_brokers and not one.key_count and not one.group_consumer_count for one in scenarios
    )


def test_cached_writes_are_drawn_with_and_without_failures_of_power() -> None:
    assert len(varied(lambda one: is_cached(one) and one.power_fails)) > 10
    assert len(varied(lambda one: is_cached(one) and not one.power_fails)) > 10


def test_with_a_disk_that_lies_every_acknowledgement_waits_for_one_copy_more() -> None:
    scenarios = varied(is_distrusted)
    assert len(scenarios) > 20
    for one in scenarios:
        assert not one.fault_weights.keys() & set(OTHER_LOSSES)
        assert all(plan.min_insync == len(plan.voters) // 2 + 2 for plan in one.groups)
    assert not any(one.has_brokers and "lying-disk" in one.fault_weights for one in scenarios)


def test_keys_are_deleted_from_compacted_topics_of_all_kinds() -> None:
    scenarios = varied(deletes_keys)
    assert len(scenarios) > 15
    for one in scenarios:
        assert one.key_count and one.log.compacted and not one.log.write_caching
        assert not one.fault_weights.keys() & {"wall-clock-jump", *DISTRUST}
        assert one.audit_interval_ms <= one.log.delete_retention_ms // 2
    assert {one.has_brokers for one in scenarios} == {True, False}
    assert any(moves(one) for one in scenarios)
    assert any("lost-disk" in one.fault_weights for one in scenarios)
    assert any("absence" in one.fault_weights for one in scenarios)


def test_one_disk_rots_where_no_other_is_lost() -> None:
    scenarios = varied(rots)
    assert len(scenarios) > 15
    for one in scenarios:
        kinds = one.fault_weights.keys()
        assert not kinds & {"lost-disk", "configuration-change", *DISTRUST}
        assert not moves(one) and not one.log.write_caching
        powerless = {kind for kind in kinds if FAULT_KINDS[kind].loses_page_cache}
        assert "open-rot" not in kinds or not kinds & {"index-rot"} | powerless - {"journal-rot"}
    assert {kind for one in scenarios for kind in one.fault_weights} >= set(ROT_FAULTS)
    assert {one.has_brokers for one in scenarios} == {True, False}


def test_the_scrub_goes_round_where_a_log_rots_below_who_has_it_open() -> None:
    scenarios = varied(scrubs)
    assert len(scenarios) > 25
    assert all(map(scrubs, varied(lambda one: "open-rot" in one.fault_weights)))
    assert any("bit-rot" in one.fault_weights and not rots(one) for one in scenarios)
    assert any(not one.fault_weights.keys() & {"bit-rot", *ROT_FAULTS} for one in scenarios)


@pytest.mark.simulation
@pytest.mark.parametrize(
    "holds", [deletes, is_cached, is_distrusted, moves, deletes_keys, rots, scrubs, loses_answers]
)
def test_every_promise_holds(holds: Callable[[Scenario], bool]) -> None:
    outcomes = [run_scenario(one) for one in varied(holds, FEW)]
    assert [outcome.violation for outcome in outcomes] == [None] * FEW
    assert sum(outcome.tally.acknowledged_count for outcome in outcomes) > 60 * FEW
    if holds is deletes:
        assert sum(outcome.tally.deletion_count for outcome in outcomes) > 20
    if holds is deletes_keys:
        assert sum(outcome.tally.table_count for outcome in outcomes) > 100


@pytest.mark.simulation
def test_a_broker_whose_tail_rots_is_brought_up_to_date() -> None:
    """Its operator may replace its disk where all others are whole: seed 527 with fewer copies."""
    drawn = draw(527)
    groups = tuple(replace(plan, min_insync=1) for plan in drawn.groups)
    assert run_scenario(replace(drawn, groups=groups)).violation is None


@pytest.mark.simulation
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1268, id="a group of which every voter must acknowledge, one with a bad disk"),
        pytest.param(1623, id="a slow disk: the core has begun anew, its log has yet to"),
        pytest.param(1827, id="a leader's own log is damaged where a follower needs it"),
        pytest.param(1185, id="a damaged log leads, of which nobody has what the others need"),
        pytest.param(705, id="a compacted segment lost its summary, and its producer asks again"),
        pytest.param(741, id="a log that begins late is opened, and its producers ask again"),
        pytest.param(1087, id="what only the leader's retention has taken is deleted by an admin"),
        pytest.param(3163, id="an observer keeps a log closed, and its operator replaces the disk"),
        pytest.param(1380, id="a follower is heard again, and its leader had long asked in vain"),
    ],
)
def test_what_once_broke_a_promise_keeps_it(seed: int) -> None:
    assert run_scenario(draw(seed)).violation is None
