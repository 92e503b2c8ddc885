"""Values that a policy names and no broker has are told; they refuse nothing (decision 0008)."""

import pytest

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Policy
from strandline.placement.policy.redpanda import import_leader_preference
from strandline.placement.policy.text import decode_policy
from strandline.placement.policy.unknown import unknown_values

REGIONS = ("east", "west", "south")
BROKERS = [
    (BrokerId(number), Labels.of({"region": region, "disk": "ssd" if number == 1 else ""}))
    for number, region in enumerate(REGIONS, start=1)
]
SOUT = "no broker has region=sout; brokers have east, south, west (did you mean south?)"


def notes(text: str) -> list[str]:
    return [str(one) for one in unknown_values(decode_policy(text), BROKERS)]


@pytest.mark.parametrize(
    "text",
    [
        "residency: {deny: [{label: region, op: in, values: [sout]}]}",
        "residency: {allow: [{label: region, op: in, values: [east, sout]}]}",
        "leaders: {prefer: [[{label: region, op: in, values: [sout]}]]}",
        "rules: [{where: [{label: region, op: notIn, values: [sout]}]}]",
        "counts: [{label: region, value: sout, count: 0}]",
        "spread: [{by: region, even: true, over: [east, sout]}]",
        "rules: [{spread: [{by: region, even: true, over: [sout, west]}]}]",
    ],
)
def test_a_value_that_nobody_has_is_told_wherever_it_stands(text: str) -> None:
    assert notes(text) == [SOUT]
    assert notes(text.replace("sout", "south")) == []


def test_each_is_told_once_and_a_guess_only_where_one_is_close() -> None:
    where = "{label: region, op: in, values: [mars, sout, mars]}"
    assert notes(f"{{leaders: {{prefer: [[{where}]]}}, residency: {{deny: [{where}]}}}}") == [
        "no broker has region=mars; brokers have east, south, west",
        SOUT,
    ]


def test_redpandas_racks_are_regions() -> None:
    policy = Policy(leaders=import_leader_preference("ordered_racks:east,sout"))
    assert [str(one) for one in unknown_values(policy, BROKERS)] == [SOUT]


def test_a_broker_that_is_not_there_is_told_by_its_id() -> None:
    text = "rules: [{count: 1, where: [{label: broker, op: in, values: ['1', '9']}]}]"
    assert notes(text) == ["there is no broker 9; there are 1, 2, 3"]


def test_a_label_that_nobody_has_is_somebody_elses_to_refuse() -> None:
    assert notes("residency: {deny: [{label: country, op: in, values: [de]}]}") == []
    assert notes("rules: [{where: [{label: disk, op: exists}]}]") == []
    assert notes("residency: {deny: [{label: disk, op: in, values: [hdd]}]}") == [
        "no broker has disk=hdd; brokers have ssd"
    ]


def test_many_values_are_cut_and_counted() -> None:
    brokers = [(BrokerId(one), Labels(zone=f"z{one:02}")) for one in range(12)]
    policy = decode_policy("residency: {deny: [{label: zone, op: in, values: [other]}]}")
    (note,) = unknown_values(policy, brokers)
    assert str(note).endswith("brokers have z00, z01, z02, z03, z04, z05, z06, z07 and 4 more")
