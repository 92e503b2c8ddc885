"""Policies by short names, by text and by file; what is wrong is said in one line."""

from pathlib import Path

import pytest
from tests.pipeline.plan.described import cluster_of

from strandline.base.errors import OperatorError
from strandline.pipeline.plan.alternatives import parse_alternatives, place
from strandline.pipeline.plan.assumptions import Assumptions
from strandline.placement.policy.text import decode_policy
from strandline.placement.topology.described import decode_cluster

CLUSTER = cluster_of(3, zones=2, brokers=2)
REGION_OF = {one.id: one.labels.region for one in CLUSTER.candidates}


def regions_of(word: str) -> tuple[list[str], list[str]]:
    """The regions of voters and of observers of the first partition."""
    (one,) = parse_alternatives([word], CLUSTER)
    roles = place(one, CLUSTER, partitions=1, config=Assumptions().config()).partitions[0]
    return (
        sorted(REGION_OF[broker] for broker in roles.voters),
        sorted(REGION_OF[broker] for broker in roles.observers),
    )


def test_numbers_are_voters_by_region_in_the_order_of_the_file() -> None:
    assert regions_of("3+1") == (["r0", "r0", "r0", "r1"], [])
    assert regions_of("2+0+1") == (["r0", "r0", "r2"], [])
    assert regions_of("2+1+1o") == (["r0", "r0", "r1"], ["r2"])
    assert regions_of("rf3")[0] == ["r0", "r1", "r2"]


def test_an_observer_by_number_stands_in() -> None:
    (one,) = parse_alternatives(["2+1+1o"], CLUSTER)
    assert one.request.policy.promotion == "under-min-isr"
    placed = place(one, CLUSTER, partitions=1, config=Assumptions().config())
    assert placed.rules.shrinks


def test_keys_and_names_stand_beside_the_policy() -> None:
    near, far = parse_alternatives(
        ["rf3,min-insync=2,placement=3", "far=survive region,promotion=region-lost"], CLUSTER
    )
    assert (near.name, near.request.min_insync_replicas) == ("rf3,min-insync=2,placement=3", 2)
    assert near.placement == 3 and not near.has_policy
    assert (far.name, far.request.policy.promotion) == ("far", "region-lost")
    assert far.request.policy.survive == decode_policy("survive: region").survive


def test_a_text_and_a_file_are_policies_as_they_are(tmp_path: Path) -> None:
    text = '{"survive": ["region", "2 brokers"], "rules": [{"count": 5}]}'
    file = tmp_path / "a,b=c.yaml"
    file.write_text(text)
    by_text, by_file, named = parse_alternatives([text, str(file), f"mine={file}"], CLUSTER)
    assert by_text.request.policy == by_file.request.policy == named.request.policy
    assert named.name == "mine"
    confluent = tmp_path / "confluent.json"
    confluent.write_text(
        '{"version": 2, "replicas": [{"count": 1, "constraints": {"rack": "r0"}}]}'
    )
    (read,) = parse_alternatives([str(confluent)], CLUSTER)
    assert read.request.policy.rules[0].count == 1


def test_other_placements_of_one_policy_can_be_compared() -> None:
    one, two = parse_alternatives(["2+1", "2+1,placement=2"], CLUSTER)
    config = Assumptions().config()
    first = place(one, CLUSTER, partitions=8, config=config).partitions
    assert first == place(one, CLUSTER, partitions=8, config=config).partitions
    assert first != place(two, CLUSTER, partitions=8, config=config).partitions


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give --policy at least once"),
        (["nothing.yaml"], "there is no file 'nothing.yaml'"),
        (["1+1+1+1"], "4 regions, and the cluster's brokers are in r0, r1, r2"),
        (["0+1o"], "one that votes"),
        (["rf16"], "rf1 to rf15"),
        (["rf3,min-insync=0"], "min-insync=0: write 1 to 15"),
        (["rf3,promotion=soon"], "promotion=soon: write under-min-isr"),
        (["survive regoin"], "regoin"),
        (["{survive: [region]"], "--policy {survive: [region]"),
        (["rf3", "rf3"], "given twice: give them names"),
        (["2+1,min-isr=2"], "unknown key 'min-isr': did you mean min-insync?"),
        (["mine=2+1,min-isr=2,placement=2"], "unknown key 'min-isr'"),
        (["2+1,colour=red"], "unknown key 'colour': write [NAME=]POLICY"),
        (["=rf3"], "write [NAME=]POLICY"),
        (["rf3"] * 33, "compare at most 32"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words: list[str], says: str) -> None:
    with pytest.raises(OperatorError) as refused:
        parse_alternatives(words, CLUSTER)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_a_policy_that_cannot_be_placed_is_refused_with_the_reason() -> None:
    (one,) = parse_alternatives(["9+1"], CLUSTER)
    with pytest.raises(OperatorError, match="--policy 9\\+1: cannot place 10 voters") as refused:
        place(one, CLUSTER, partitions=1, config=Assumptions().config())
    assert refused.value.details


def test_brokers_without_regions_have_no_voters_by_region() -> None:
    cluster = decode_cluster("brokers: [{count: 3}]")
    with pytest.raises(OperatorError, match="the cluster's brokers are in none"):
        parse_alternatives(["1+1"], cluster)
