"""What a refusal says, in words that a user can act on (decision 0008)."""

import random
from dataclasses import replace

import pytest
from tests.placement.solver_world import candidate, cluster
from tests.placement.test_solver import refused, solved

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.constraints.reasons import REASONS, because
from strandline.placement.policy.confluent import import_confluent
from strandline.placement.policy.text import decode_policy
from strandline.placement.policy.words import changes_between
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.topology.universe import Candidate


@pytest.mark.parametrize(
    ("policy", "regions", "changes"),
    [
        ("rules: [{count: 7}]", "aabbc", "5 voters instead of 7"),
        ("survive: [region, 2 brokers]", "aaa", "survive 1 broker instead of 1 region, 2 brokers"),
        ("survive: 2 regions", "aaabbb", "survive 2 brokers instead of 2 regions"),
    ],
)
def test_the_end_of_all_changes_is_told_and_not_the_steps(
    policy: str, regions: str, changes: str
) -> None:
    refusal = refused(policy, cluster(*regions))
    assert refusal.nearest is not None
    assert refusal.nearest.changes == (changes,)
    assert f"this would be possible: {changes}" in refusal.lines()
    solved(refusal.nearest.policy, cluster(*regions))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("survive: region", "survive: zone", "survive 1 zone instead of 1 region"),
        ("survive: [region, 2 brokers]", "survive: broker",
         "survive 1 broker instead of 1 region, 2 brokers"),
        ("survive: [region, 2 brokers]", "survive: region",
         "survive 1 region alone instead of 2 brokers"),
        ("survive: region", "{}", "no survive instead of 1 region"),
        ("spread: [{by: zone, max_per: 1}]", "spread: [{by: zone, max_per: 3}]",
         "at most 3 in one zone"),
        ("spread: [{by: zone, min_distinct: 3}]", "spread: [{by: zone, min_distinct: 1}]",
         "at least 1 distinct zone"),
        ("spread: [{by: zone, even: true}]", "spread: [{by: zone, level: soft}]",
         "zone spread as far as it can be"),
        ("counts: [{label: region, value: a, count: 2}]", "{}", "any number where region=a"),
        ("distinct_host: true", "distinct_host: false", "replicas on the same host"),
        ("rules: [{count: 2, where: [{label: y, op: exists}, {label: z, op: notIn, values: [a]}]}]",
         "rules: [{count: 1, where: [{label: y, op: exists}, {label: z, op: notIn, values: [a]}]}]",
         "1 voter where y is there and z not in [a] instead of 2"),
        ("rules: [{count: 2, where: [{label: z, op: in, values: [a, b]}]}]",
         "rules: [{count: 2, where: [{label: z, op: in, values: [a, b]}], level: soft}]",
         "voters where z in [a, b] preferred instead of required"),
        ("rules: [{role: observer, count: 2, spread: [{by: zone, max_per: 1}]}]",
         "rules: [{role: observer, count: 2, spread: [{by: zone, max_per: 2}]}]",
         "at most 2 in one zone for observers"),
    ],
)  # fmt: skip
def test_changes_of_a_policy_are_told_by_what_they_are_about(
    before: str, after: str, words: str
) -> None:
    assert changes_between(decode_policy(before), decode_policy(after)) == (words,)


def test_rules_of_another_language_are_told_by_their_brokers() -> None:
    """Confluent's JSON has no rules[2]."""
    policy = import_confluent(
        '{"version": 2, "replicas": [{"count": 3, "constraints": {"rack": "a"}}], '
        '"observers": [{"count": 3, "constraints": {"rack": "b"}}]}'
    )
    found = solve(Request(policy=policy), cluster(*"aaaaabb"), rng=random.Random(1))
    assert isinstance(found, Refusal) and found.nearest is not None
    assert "rules[" not in str(found)
    assert found.blocking == ("where region=b",)
    assert "only brokers 6, 7 can take an observer" in found.lines()


def test_brokers_that_would_help_are_named_by_the_labels_they_need() -> None:
    south = "rules: [{count: 2, where: [{label: region, op: in, values: [south]}]}]"
    assert (
        refused(south, cluster("south", "north")).newcomers == "one more broker with region=south"
    )
    assert refused(south, cluster("north")).newcomers == "2 more brokers with region=south"
    assert refused("survive: zone", cluster("a/1", "a/2")).newcomers == (
        "one more broker in another zone"
    )
    both = "survive: zone\nrules: [{count: 3, where: [{label: region, op: in, values: [a]}]}]"
    assert refused(both, cluster("a/1", "a/2")).newcomers == (
        "one more broker with region=a in another zone"
    )
    assert refused("rules: [{count: 9}]", cluster(*"ab")).newcomers == ""


def test_a_broker_that_would_help_does() -> None:
    """Where one more is said to do, there is a placement with it."""
    policy = """
    survive: region
    rules: [{count: 3, where: [{label: disk, op: in, values: [ssd, nvme]}]}]
    residency: {allow: [{label: region, op: in, values: [a, b, c]}]}
    """

    def broker(id: int, region: str, disk: str) -> Candidate:
        return replace(candidate(id, region), labels=Labels(region=region, free=(("disk", disk),)))

    known = [broker(1, "a", "ssd"), broker(2, "b", "ssd"), broker(3, "c", "hdd")]
    assert refused(policy, known).newcomers == "one more broker with region=c disk=ssd"
    solved(policy, [*known, broker(4, "c", "ssd")])


def test_every_reason_is_a_sentence_of_one_broker_and_of_several() -> None:
    values = {"label": "zone", "values": "a, b", "domain": "z", "goal": "1 region"}
    for code in REASONS:
        one, many = (
            because(code, **values, held=number, limit=number, needed=number, left=number,
                    lost=number)  # type: ignore[arg-type]
            for number in (1, 2)
        )  # fmt: skip
        single, several = one.text_for([BrokerId(4)]), many.text_for([BrokerId(4), BrokerId(5)])
        assert single.startswith("broker 4") and several.startswith("brokers 4, 5")
        for text, wrong in (
            (single, ("1 voters", "1 replicas", "1 more replicas", ": is ", ": has ", ": holds ")),
            (several, ("2 voter ", "2 replica ", " is down", " holds ", ": are ")),
        ):
            assert not [words for words in wrong if words in f"{text} "], text


def test_many_brokers_are_named_by_the_first_of_them() -> None:
    text = because("down").text_for([BrokerId(one) for one in range(1, 21)])
    assert text == "brokers 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 8 more are down"


# ---- labels that are missing -------------------------------------------------------------------


def disks(text: str, *, regions: str = "") -> list[Candidate]:
    """Brokers whose disks are these: s is ssd, h is hdd, - does not say."""
    kinds = {"s": (("disk", "ssd"),), "h": (("disk", "hdd"),), "-": ()}
    places = zip(text, regions or "a" * len(text), strict=True)
    return [
        replace(candidate(number, ""), labels=Labels(region=region, free=kinds[kind]))
        for number, (kind, region) in enumerate(places, start=1)
    ]


SSD = "rules: [{count: 3, where: [{label: disk, op: in, values: [ssd]}]}]"


def test_brokers_without_a_label_are_in_nobodys_way_while_others_will_do() -> None:
    known = disks("ssssssssss--")
    for placed in solved(SSD, known, partitions=40).partitions:
        assert max(placed.voters) <= 10
    three = "survive: zone"
    assert 4 not in solved(three, cluster("a/1", "a/2", "a/3", "a")).partitions[0].voters


def test_a_label_that_is_missing_is_named_where_nothing_can_be_placed_without_it() -> None:
    refusal = refused(SSD, disks("ss---h--"))
    assert refusal.hint == (
        "brokers 3, 4, 5, 7, 8 have no label 'disk', which the policy needs: give them one, or "
        "leave 'disk' out of the policy"
    )
    assert str(refusal).count("no label") == 1


def test_who_is_elsewhere_anyhow_need_not_say_more() -> None:
    east = (
        "rules: [{count: 3, where: [{label: region, op: in, values: [e]}, "
        "{label: disk, op: in, values: [ssd]}]}]\n"
        "residency: {deny: [{label: region, op: in, values: [n]}]}"
    )
    assert refused(east, disks("ss-h----", regions="eeeewwnn")).hint.startswith("broker 3 has no")


@pytest.mark.parametrize(
    "soft",
    [
        "rules: [{where: [{label: disk, op: in, values: [ssd]}], level: soft, weight: 20}]",
        "spread: [{by: power, level: soft}]",
        "rules: [{count: 3, spread: [{by: power, level: soft}]}]",
        "leaders: {prefer: [[{label: disk, op: in, values: [ssd]}]]}",
    ],
)
def test_what_is_soft_refuses_nothing(soft: str) -> None:
    solved(soft, disks("---"))


def test_soft_rules_prefer_who_says_what_they_ask_for() -> None:
    soft = "rules: [{where: [{label: disk, op: in, values: [ssd]}], level: soft, weight: 20}]"
    (placed,) = solved(soft, disks("-s-h-ss")).partitions
    assert set(placed.voters) == {2, 6, 7}


def test_each_rule_needs_its_own_labels() -> None:
    """An observer's broker need not say a zone, which only the voters are spread by."""
    policy = """
    survive: zone
    rules:
      - {count: 3, where: [{label: region, op: in, values: [a]}]}
      - {role: observer, count: 1, where: [{label: region, op: in, values: [b]}]}
    """
    (placed,) = solved(policy, cluster("a/1", "a/2", "a/3", "b")).partitions
    assert placed.observers == (4,)
