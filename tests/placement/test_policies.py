"""A policy is read strictly, and what it lacks is said in one line (decision 0008)."""

import re

import pytest

from strandline.base.errors import OperatorError
from strandline.placement.policy.confluent import check_replication_factor, import_confluent
from strandline.placement.policy.document import (
    Goal,
    LabelCount,
    Leaders,
    Policy,
    Residency,
    Rule,
    Selector,
    Spread,
    needed_labels,
)
from strandline.placement.policy.goals import format_goal
from strandline.placement.policy.redpanda import import_leader_preference
from strandline.placement.policy.text import decode_policy, encode_policy

WHOLE = """
survive: [region and one more broker, {zone: 2}]
rules:
  - {role: voter, count: 2, where: [{label: region, op: in, values: [eu-west]}]}
  - {role: voter, where: [{label: disk, op: exists}], level: soft, weight: 20}
  - {role: observer, count: 1, spread: [{by: rack, max_per: 1}]}
spread:
  - {by: rack, max_per: minority}
  - {by: zone, even: true, over: [a, b]}
  - {by: power, level: soft, weight: 5}
counts: [{label: region, value: eu-south, count: 1}]
leaders: {prefer: [[{label: region, op: in, values: [eu-west]}]], failback_delay_ms: 60000}
residency: {allow: [{label: country, op: in, values: [de, fr]}]}
distinct_host: false
nearest_quorum: 10
"""


def region(*names: str) -> Selector:
    return Selector("region", "in", names)


def test_every_part_of_a_policy_is_read() -> None:
    assert decode_policy(WHOLE) == Policy(
        survive=(Goal(region=1, broker=1), Goal(zone=2)),
        rules=(
            Rule(count=2, where=(region("eu-west"),)),
            Rule(where=(Selector("disk", "exists"),), level="soft", weight=20),
            Rule(role="observer", count=1, spread=(Spread("rack", max_per=1),)),
        ),
        spread=(
            Spread("rack", max_per="minority"),
            Spread("zone", even=True, over=("a", "b")),
            Spread("power", level="soft", weight=5),
        ),
        counts=(LabelCount("region", "eu-south", 1),),
        leaders=Leaders(prefer=((region("eu-west"),),), failback_delay_ms=60_000),
        residency=Residency(allow=(Selector("country", "in", ("de", "fr")),)),
        distinct_host=False,
        nearest_quorum=10,
    )


def test_the_canonical_text_is_json_that_reads_back_and_leaves_defaults_out() -> None:
    policy = decode_policy(WHOLE)
    text = encode_policy(policy)
    assert decode_policy(text) == policy and encode_policy(decode_policy(text)) == text
    assert encode_policy(decode_policy("{}")) == "{}"
    assert encode_policy(decode_policy("survive: region")) == '{"survive":[{"region":1}]}'


@pytest.mark.parametrize(
    ("words", "goal"),
    [
        ("region", Goal(region=1)),
        ("any two brokers", Goal(broker=2)),
        ("2 brokers", Goal(broker=2)),
        ("two zones", Goal(zone=2)),
        ("Region AND one more broker", Goal(region=1, broker=1)),
        ("a zone and 2 more hosts and an upgrade_domain", Goal(zone=1, host=2, upgrade_domain=1)),
        ("regoin", None),
        ("region, zone", None),
        ("region and region", None),
        ("8 brokers", None),
        ("0 brokers", None),
        ("", None),
    ],
)
def test_goals_are_read_in_words_or_refused_with_an_example(words: str, goal: Goal | None) -> None:
    text = f"survive: ['{words}']"
    if goal is not None:
        assert decode_policy(text).survive == (goal,)
        assert decode_policy(f"survive: {format_goal(goal)}").survive == (goal,)
    else:
        with pytest.raises(OperatorError, match=r"^placement.policy: survive: [^\n]*: write|twice"):
            decode_policy(text)


REFUSED = [
    ("survive: 3", "survive: Expected `array`, got `int`"),
    ("survive: [{regoin: 1}]", "survive[0]: unknown field 'regoin' (did you mean region?)"),
    ("survive: [{region: 0}]", "survive[0]: is empty"),
    ("survive: [{region: 9}]", "Expected `int` <= 7"),
    ("survive: [{region: 4, zone: 4}]", "are 8 losses"),
    ("survive: [region, 1 region]", "1 region is there twice"),
    ("rulez: []", "unknown field 'rulez' (did you mean rules?)"),
    ("rules: [{count: '3'}]", "rules[0].count: Expected `int | null`, got `str`"),
    ("rules: [{count: 0}]", "Expected `int` >= 1"),
    ("rules: [{count: 16}]", "16 voters: ask for at most 15"),
    ("rules: [{count: 3}, {role: observer, count: 29}]", "32 replicas: ask for at most 31"),
    ("rules: [{role: learner}]", "Invalid enum value 'learner'"),
    ("rules: [{role: observer}]", "observers need a count"),
    ("rules: [{}, {}]", "several voter rules without a count"),
    ("rules: [{level: soft}]", "has no `where` that it prefers"),
    ("rules: [{weight: 3}]", "a weight goes with level: soft"),
    ("rules: [{where: [{label: zone, op: in}]}]", "rules[0].where[0]: in needs values"),
    ("rules: [{where: [{label: zone, op: exists, values: [a]}]}]", "exists takes no values"),
    ("rules: [{where: [{label: zone, op: in, values: [no]}]}]", "got `bool`: put it in quotes"),
    ("rules: [{where: [{label: zone, op: in, values: [1]}]}]", "got `int`: put it in quotes"),
    ("rules: [{where: [{label: Zone, op: exists}]}]", "must be 1 to 63 of a-z"),
    ("rules: [{where: [{label: broker, op: in, values: [x]}]}]", "must be a broker's id"),
    ("rules: [{where: [{label: broker, op: exists}]}]", "every broker has an id"),
    ("spread: [{by: zone}]", "needs max_per, min_distinct or even"),
    ("spread: [{by: zone, max_per: most}]", "Invalid enum value 'most'"),
    ("spread: [{by: zone, max_per: 1, level: soft}]", "a soft spread is as even as it can be"),
    ("spread: [{by: zone, max_per: 1, even: true}]", "even says it all"),
    ("spread: [{by: zone, max_per: 1, over: [a]}]", "`over` goes with even"),
    ("spread: [{by: broker, max_per: 1}]", "always on distinct brokers"),
    ("counts: [{label: zone, value: '', count: 1}]", "must not be empty"),
    ("leaders: {prefer: [[]]}", "leaders.prefer[0]: is empty"),
    ("promotion: under-min-isr", "no rule places any: leave it out"),
    ("leaders: {follow: readers}", "Invalid enum value 'readers'"),
    (
        "leaders: {follow: writers, prefer: [[{label: region, op: in, values: [east]}]]}",
        "leave out prefer or follow",
    ),
    ("a: &x 1\nb: *x", "has an alias in line 2: write it out"),
    ("survive: region\nsurvive: zone", "gives 'survive' twice"),
    ('{"survive": "region", "survive": "zone"}', "gives 'survive' twice"),
    ('{"nearest_quorum": NaN}', "NaN is no number"),
    ('{"survive": ', "neither JSON nor YAML"),
    ("survive: [", "neither JSON nor YAML: expected the node content"),
    ("1: 2", "the name 1 in line 1: put it in quotes"),
    ("survive: !!python/object:os.system {}", "has a tag in line 1: leave it out"),
    ("{!!timestamp 2001-01-01EUR, survive: region}", "has a tag in line 1: leave it out"),
    ("[" * 5_000, "nested too deeply"),
    ('{"a\ud800": 1}', "surrogates not allowed"),
    ('{"a\\ud800": 1}', "surrogates not allowed"),
    ('survive: "\\ud800"', "surrogates not allowed"),
    ("nearest_quorum: " + "9" * 4_000, "nearest_quorum"),
    ("", "must be an object"),
    ("- region", "must be an object"),
    ("x" * 20_000, "20000 characters: write at most 16384"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text[:50] for text, _ in REFUSED])
def test_what_a_policy_cannot_say_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(OperatorError) as refused:
        decode_policy(text)
    message = str(refused.value)
    assert reason in message and "\n" not in message and len(message) < 400
    assert message.startswith("placement.policy: ")


def test_the_labels_that_a_policy_needs_are_those_it_counts_or_compares() -> None:
    assert needed_labels(decode_policy(WHOLE)) == [
        "country", "region", "rack", "zone",
    ]  # fmt: skip


CONFLUENT = """{"version": 2,
 "replicas": [{"count": 3, "constraints": {"rack": "west-a"}}, {"count": 3, "constraints": {"rack": "west-b"}}],
 "observers": [{"count": 2, "constraints": {"rack": "us-east"}}],
 "observerPromotionPolicy": "under-replicated"}"""  # noqa: E501


def test_confluents_constraints_are_read_as_they_are() -> None:
    policy = import_confluent(CONFLUENT)
    assert policy.rules == (
        Rule(count=3, where=(region("west-a"),)),
        Rule(count=3, where=(region("west-b"),)),
        Rule(role="observer", count=2, where=(region("us-east"),)),
    )
    assert policy.promotion == "under-replicated"
    assert decode_policy(encode_policy(policy)) == policy


@pytest.mark.parametrize(
    ("version", "promotion"), [(1, "leader-is-observer"), (2, "under-min-isr")]
)
def test_the_version_says_when_observers_are_promoted(version: int, promotion: str) -> None:
    text = CONFLUENT.replace('"version": 2', f'"version": {version}')
    text = re.sub(r',\s*"observerPromotionPolicy".*"', "", text)
    assert import_confluent(text).promotion == promotion


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"version": 2', '"version": 1', "observerPromotionPolicy needs version 2"),
        ('"version": 2', '"version": 3', "Invalid enum value 3"),
        ('"west-b"', '"west-a"', "rack 'west-a' is there twice among the voters"),
        ('{"rack": "west-b"}', '{"zone": "b"}', "unknown field `zone`"),
        ('"count": 3', '"count": 0', "Expected `int` >= 1"),
        ('"count": 3', '"count": 9', "18 voters: ask for at most 15"),
        ("under-replicated", "always", "'always': write under-min-isr, under-replicated or leader"),
    ],
)
def test_what_confluent_would_refuse_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(OperatorError, match=r"^confluent\S*: [^\n]*$") as refused:
        import_confluent(CONFLUENT.replace(old, new))
    assert reason in str(refused.value)


def test_a_replication_factor_beside_constraints_must_be_theirs() -> None:
    policy = import_confluent(CONFLUENT)
    for factor in (-1, 8):
        check_replication_factor(policy, factor, config="confluent.placement.constraints")
    with pytest.raises(OperatorError) as refused:
        check_replication_factor(policy, 3, config="confluent.placement.constraints")
    assert str(refused.value).startswith(
        "Both replicationFactor and confluent.placement.constraints are set. "
        "Both cannot be used at the same time."
    )


@pytest.mark.parametrize(
    ("text", "prefer"),
    [
        ("none", ()),
        ("racks: a, b", ((region("a", "b"),),)),
        (
            "ordered_racks:a,b,c,a",
            ((region("a"),), (region("b"),), (region("c"),), (region("a"),)),
        ),
    ],
)
def test_redpandas_leader_preferences_are_read(text: str, prefer: object) -> None:
    assert import_leader_preference(text) == Leaders(prefer=prefer)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "racks", "racks:", "racks:a,,b", "rack:a", "none:a"])
def test_what_redpanda_would_refuse_is_refused(text: str) -> None:
    with pytest.raises(OperatorError, match=r"^redpanda.leaders.preference: [^\n]*write"):
        import_leader_preference(text)
