"""Why a placement is as it is, how long a write waits, and what crosses regions (decision 0008)."""

from decimal import Decimal

import msgspec
import pytest
from tests.placement.solver_world import candidate, cluster

from strandline.base.errors import OperatorError
from strandline.model.ids import BrokerId
from strandline.placement.explain.explanation import Explanation, explain
from strandline.placement.explain.prices import decode_prices
from strandline.placement.policy.document import Role
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.request import Request
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState

TRIPS = RoundTrips({("e", "w"): 30, ("e", "s"): 80, ("w", "s"): 90})
CLUSTER = cluster("e/1", "e/2", "w/1", "w/2", "s/1", "s/2")
PRICES = """
currency: EUR
cross_region_per_gb: 0.02
cross_zone_per_gb: "0.01"
links: [{from: e, to: s, per_gb: 0.09}]
"""


def explained(
    policy: str, *voters: int, observers: tuple[int, ...] = (), **more: int
) -> Explanation:
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in voters]
    roles += [(BrokerId(n), "observer") for n in observers]
    request = Request(policy=decode_policy(policy), round_trips=TRIPS, **more)  # type: ignore[arg-type]
    return explain(request, CLUSTER, roles, prices=decode_prices(PRICES))


def test_a_write_waits_for_the_nearest_quorum_of_its_leader() -> None:
    latencies = explained("{}", 1, 2, 3, 4, 5).latencies
    assert [(one.region, one.commit_ms, one.waits_for) for one in latencies] == [
        ("e", 30, (2, 3)), ("e", 30, (1, 3)), ("w", 30, (4, 1)), ("w", 30, (3, 1)),
        ("s", 80, (1, 2)),
    ]  # fmt: skip


def test_more_replicas_for_a_write_are_waited_for_longer() -> None:
    latencies = explained("{}", 1, 2, 3, 4, 5, min_insync_replicas=5).latencies
    assert [one.commit_ms for one in latencies] == [80, 80, 90, 90, 90]


def test_ways_that_nobody_measured_come_last_and_are_said() -> None:
    request = Request(policy=decode_policy("{}"), round_trips=RoundTrips({("e", "w"): 30}))
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in (1, 3, 5)]
    latencies = explain(request, CLUSTER, roles).latencies
    assert [one.commit_ms for one in latencies] == [30, 30, None]
    alone = explain(request, CLUSTER, roles[:1])
    assert (alone.latencies[0].commit_ms, alone.latencies[0].waits_for, alone.costs) == (0, (), ())


def test_a_copy_crosses_to_each_region_and_is_handed_on_there_to_observers_too() -> None:
    found = explained("{}", 1, 2, 3, observers=(5, 6))
    first = found.traffic[0]
    assert (first.leader, first.cross_region, first.cross_zone) == (1, 2, 2)
    assert [(link.source, link.target, link.copies) for link in first.links] == [
        ("e", "s", 1), ("e", "w", 1),
    ]  # fmt: skip
    assert (found.costs[0].per_gb, found.costs[0].currency) == (Decimal("0.13"), "EUR")
    assert found.costs[2].per_gb == Decimal("0.06")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("currency: ''", "Expected `str` of length >= 1"),
        ("cross_zone_per_gb: 1", "missing required field `currency`"),
        ("{currency: EUR, cross_zone_per_gb: -1}", "-1 is not a price"),
        ("{currency: EUR, cross_zone_per_gb: .nan}", "is not a price"),
        ("{currency: EUR, cross_zone: 1}", "unknown field `cross_zone`"),
        ("{currency: EUR, links: [{from: a, per_gb: 1}]}", "missing required field `to`"),
    ],
)
def test_a_price_table_that_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(OperatorError, match=r"^prices: [^\n]*$") as refused:
        decode_prices(text)
    assert reason in str(refused.value)


def test_each_replica_says_who_else_could_be_there_and_who_could_not() -> None:
    policy = """
    survive: region
    rules: [{count: 3, where: [{label: zone, op: in, values: ["1"]}], level: soft}]
    leaders: {prefer: [[{label: region, op: in, values: [w]}]]}
    """
    found = explained(policy, 3, 1, 5)
    assert found.judgement.is_right and not found.broken
    leader, east, _ = found.replicas
    assert (leader.broker, leader.preference, east.preference) == (3, 0, None)
    assert [(one.level, one.domain, one.replicas) for one in leader.domains] == [
        ("region", "w", 1), ("zone", "w/1", 1),
    ]  # fmt: skip
    assert leader.worse == (4,) and not leader.equal and not leader.better
    assert [str(one) for one in leader.refused] == [
        "brokers 1, 5 hold another replica of the partition",
        "brokers 2, 6: losing 1 region could then take 2 voters, but at most 1 may be lost",
    ]
    moved = explained(policy, 4, 1, 5)
    assert moved.replicas[0].better == (3,)


def test_a_placement_that_breaks_its_policy_says_what_and_how() -> None:
    found = explained("survive: region", 1, 2, 3)
    assert [str(one) for one in found.broken] == [
        "survive 1 region does not hold: it can take the voters 1, 2, and writes need 2 of 3"
    ]
    assert [one.brokers for one in found.judgement.violations] == [(1, 2)]
    assert found.policy == '{"survive":[{"region":1}]}'


def test_a_replica_on_a_broker_that_went_is_in_the_judgement() -> None:
    found = explained("{}", 1, 3, 9)
    assert found.judgement.unknown == (9,) and [one.broker for one in found.replicas] == [1, 3]


def test_fewer_voters_than_the_policy_asks_for_are_judged_by_what_it_asks_for() -> None:
    policy = "survive: region\nrules: [{count: 2}, {role: voter}]"
    found = explained(policy, 1)
    assert found.judgement.missing == {0: 1, 1: 1} and found.survival.voters == 1
    found = explained("survive: region\nrules: [{count: 5}]", 1, 3, 5)
    assert found.judgement.missing == {0: 2} and not found.judgement.violations


def test_explanations_are_data_that_json_can_carry() -> None:
    found = explained("survive: [region, 2 zones]", 1, 2, 3, 4, 5, observers=(6,))
    text = msgspec.json.encode(found)
    assert msgspec.json.decode(text, type=Explanation) == found


def test_brokers_that_may_not_be_taken_now_are_told_apart_from_where_they_are() -> None:
    candidates = [*CLUSTER[:5], candidate(6, "s/2", state=BrokerState.MAINTENANCE)]
    request = Request(policy=decode_policy("survive: region"))
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in (1, 3, 5)]
    south = explain(request, candidates, roles).replicas[2]
    assert "broker 6 is in maintenance" in [str(one) for one in south.refused]
    assert not south.equal
