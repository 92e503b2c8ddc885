"""Labels come from several sources; what is wrong is said in one line (decision 0008)."""

import pytest

from strandline.base.errors import OperatorError
from strandline.controller.records import BrokerRegistered, decode_record, encode_record
from strandline.model.cluster import Address, Labels
from strandline.model.ids import BrokerId
from strandline.placement.topology.labels import (
    LabelSource,
    merge_labels,
    missing_labels,
    parse_labels,
    tell_missing,
)
from strandline.placement.topology.ordinal import parse_formula


def test_the_strongest_source_wins_and_each_label_says_where_it_comes_from() -> None:
    merged = merge_labels(
        [
            LabelSource("environment", {"zone": "b", "rack": ""}),
            LabelSource("file", {"zone": "a", "rack": "r1", "power": "left"}),
            LabelSource("command", {"region": "east", "power": "right"}),
        ]
    )
    assert merged.labels == Labels("east", "b", "r1", "", "", (("power", "left"),))
    assert merged.origin == {
        "zone": "environment", "rack": "file", "power": "file", "region": "command",
    }  # fmt: skip


def test_labels_are_read_by_name_whether_they_are_ours_or_the_operators() -> None:
    labels = Labels(region="east", upgrade_domain="2", free=(("power", "left"),))
    assert [labels.get(name) for name in ("region", "upgrade_domain", "power", "other")] == [
        "east", "2", "left", "",
    ]  # fmt: skip


def test_records_written_before_there_were_free_labels_are_still_read() -> None:
    old = (
        b'{"kind":"broker_registered","id":1,"incarnation":"a","directory_id":"d",'
        b'"rpc":{"host":"h","port":1},"kafka":{"host":"h","port":2},'
        b'"labels":{"region":"east","zone":"","rack":"","host":""}}'
    )
    record = decode_record(old)
    assert isinstance(record, BrokerRegistered)
    assert record.labels == Labels(region="east")
    labels = Labels(region="east", upgrade_domain="1", free=(("power", "left"),))
    new = BrokerRegistered(BrokerId(1), "a", "d", Address("h", 1), Address("h", 2), labels)
    assert decode_record(encode_record(new)) == new


def test_what_a_command_prints_is_one_label_a_line() -> None:
    source = parse_labels("# from the cloud\n\nregion=east\n zone = a \n", source="command")
    assert source.labels == {"region": "east", "zone": "a"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("region east", "command, line 1: 'region east' is no label: write region=eu-west-1"),
        ("a=1\nb=2\na=3", "command, line 3: gives a twice"),
        ("x" * 20_000, "command: more than 16384 characters"),
    ],
)
def test_what_is_no_label_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(OperatorError, match=r"^[^\n]*$") as refused:
        parse_labels(text, source="command")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"Region": "east"}, "must be 1 to 63 of a-z"),
        ({"broker": "1"}, "stands for the broker itself"),
        ({"region": "e st"}, "file: label region must be 1 to 63 of A-Z"),
        ({f"label{n}": "a" for n in range(33)}, "33 labels of your own: give at most 32"),
    ],
)
def test_labels_that_cannot_be_are_refused(labels: dict[str, str], reason: str) -> None:
    with pytest.raises(OperatorError, match=r"^[^\n]*$") as refused:
        merge_labels([LabelSource("file", labels)])
    assert reason in str(refused.value)


def test_a_missing_label_names_broker_and_label() -> None:
    brokers = [(BrokerId(2), Labels(region="east")), (BrokerId(1), Labels(zone="a"))]
    missing = missing_labels(["region", "power", "broker", "region"], brokers)
    assert [(one.broker, one.label) for one in missing] == [
        (1, "region"), (1, "power"), (2, "power"),
    ]  # fmt: skip
    assert tell_missing(missing) == [
        "broker 1 has no label 'region', which the policy needs: give it one, or leave 'region' "
        "out of the policy",
        "brokers 1, 2 have no label 'power', which the policy needs: give them one, or leave "
        "'power' out of the policy",
    ]


@pytest.mark.parametrize(
    ("formula", "host", "domain"),
    [
        ("ordinal % 3", "kafka-7", "1"),
        ("ordinal / 2 % 3", "kafka-7.kafka.svc", "0"),
        ("(ordinal + 1) % 3 * 10", "k08", "0"),
        ("1 + 2 * 3 - 4 / 2", "k1", "5"),
        ("ordinal-1", "k-1", "0"),
    ],
)
def test_an_upgrade_domain_comes_of_the_number_in_the_hosts_name(
    formula: str, host: str, domain: str
) -> None:
    merged = merge_labels([], formula=parse_formula(formula), host=host)
    assert merged.labels.upgrade_domain == domain
    assert merged.origin == {"upgrade_domain": "formula"}


def test_the_host_label_and_a_given_upgrade_domain_go_before_the_formula() -> None:
    formula = parse_formula("ordinal % 3")
    named = merge_labels([LabelSource("file", {"host": "h5"})], formula=formula, host="k-1")
    assert named.labels.upgrade_domain == "2"
    given = merge_labels([LabelSource("file", {"upgrade_domain": "x"})], formula=formula, host="")
    assert given.labels.upgrade_domain == "x"


@pytest.mark.parametrize(
    "text",
    ["", "ordinal %", "%3", "(ordinal", "ordinal)", "os", "1 2", "ordinal ** 2", "__import__",
     "9999999999", "1;2", "ordinal % 3 " + " " * 60, "²", "("*60],
)  # fmt: skip
def test_what_is_no_formula_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(OperatorError, match=r"^[^\n]*for example ordinal % 3$"):
        parse_formula(text)


@pytest.mark.parametrize(
    ("formula", "host", "reason"),
    [
        ("ordinal % 3", "10.0.0.12", "has no number at the end of its name"),
        ("ordinal % 3", "fe80::12", "has no number at the end of its name"),
        ("ordinal % 3", "kafka", "has no number at the end of its name"),
        ("3 / ordinal", "k0", "divides by zero for ordinal 0"),
        ("ordinal - 5", "k1", "gives -4 for ordinal 1"),
    ],
)
def test_a_formula_that_gives_nothing_is_refused(formula: str, host: str, reason: str) -> None:
    with pytest.raises(OperatorError, match=r"^[^\n]*$") as refused:
        parse_formula(formula).upgrade_domain(host)
    assert reason in str(refused.value)
