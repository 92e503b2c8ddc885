"""Settings that must agree over all brokers: what differs is named, with who has which value.

Source: docs/operating/brokers.md, "Settings that must agree"; decision 0073."""

from pathlib import Path

import pytest

from strandline.config.broker import BROKER_KEYS, SECTIONS
from strandline.config.effective import broker_values
from strandline.config.load import load_broker_config
from strandline.config.shared_keys import (
    LEASE_PERCENT,
    SHARED_KEYS,
    TIMEOUT,
    Difference,
    Harm,
    differences,
)
from strandline.replication.settings import ReplicationSettings

PAGE = Path(__file__).parents[2] / "docs" / "operating" / "brokers.md"
FILE = """
[broker]
id = {id}
data_directory = "/data"
[cluster]
seeds = ["9@127.0.0.1:33199"]
{more}
"""
ON_EVERY_BROKER = "on every broker"


def values(more: str = "", *, id: int = 1) -> dict[str, str]:
    """The keys of a broker, as it describes them."""
    config = load_broker_config(FILE.format(id=id, more=more), file="f", environment={})
    return {one.key.name: one.value or "" for one in broker_values(config, {}, {})}


def told(*files: str) -> list[Difference]:
    """Of brokers 1, 2, ... with these lines in their files."""
    return differences({str(id): values(more, id=id) for id, more in enumerate(files, 1)})


def timeout(milliseconds: int) -> str:
    return f"[replication]\nelection_timeout_ms = {milliseconds}"


def test_equal_files_and_what_is_a_brokers_own_are_no_difference() -> None:
    assert differences({}) == told("") == []
    assert told("", "[replication]\nelection_spread_ms = 300", "[log]\nlevel = 'debug'") == []
    assert told(timeout(800), "") == [], "a default is a value"


def test_a_longer_election_timeout_is_named_with_its_broker_and_its_harm() -> None:
    (found,) = told("", timeout(1_600), "")
    assert (found.harm, found.key) == (Harm.WRONG, "[replication] election_timeout_ms")
    assert found.places == {"800": ["1", "3"], "1600": ["2"]}
    assert found.usual == "800"
    assert "stale reads" in found.what and "dead leader" in found.what


@pytest.mark.parametrize(
    ("milliseconds", "harm"),
    [
        (880, Harm.NOTE),
        (941, Harm.NOTE),  # 0.85 x 941 = 799.85
        (942, Harm.WRONG),
    ],
)
def test_a_step_of_a_change_is_a_note_while_leases_hold(milliseconds: int, harm: Harm) -> None:
    (found,) = told("", timeout(milliseconds))
    assert found.harm is harm
    assert found.usual is None, "no value is the usual one of two brokers"


def test_the_share_is_that_of_replication() -> None:
    assert ReplicationSettings().lease_ratio * 100 == LEASE_PERCENT


def test_the_order_of_a_list_does_not_count() -> None:
    one = "[security]\nwebhook_hosts = ['a.example', 'b.example']"
    two = "[security]\nwebhook_hosts = ['b.example', 'a.example']"
    assert told(one, two) == []
    (found,) = told(one, two, "")
    assert found.places == {"a.example,b.example": ["1", "2"], "": ["3"]}


def test_rules_count_once_a_broker_enforces_them() -> None:
    more = "[access]\nsuper_users = ['User:{}']\n"
    (found,) = told(more.format("a"), more.format("b"))
    assert (found.harm, found.key) == (Harm.NOTE, "[access] super_users")
    enforced = [more.format(one) + "enforce_rules = true" for one in "ab"]
    assert [one.harm for one in told(*enforced)] == [Harm.WRONG]
    keys = [one.key for one in told(enforced[0], more.format("a"))]
    assert keys == ["[access] enforce_rules"]


def test_seeds_may_differ_only_where_the_cluster_has_an_id() -> None:
    seeds = FILE.replace("9@127.0.0.1:33199", "8@127.0.0.1:33198")

    def of(text: str, more: str) -> dict[str, str]:
        config = load_broker_config(text.format(id=1, more=more), file="f", environment={})
        return {one.key.name: one.value or "" for one in broker_values(config, {}, {})}

    for more, harm in (("", Harm.WRONG), ('id = "c"', Harm.NOTE)):
        (found,) = differences({"1": of(FILE, more), "2": of(seeds, more)})
        assert (found.harm, found.key) == (harm, "[cluster] seeds")
    (found,) = differences({"1": of(FILE, 'id = "c"'), "2": of(FILE, "")})
    assert (found.harm, found.key) == (Harm.WRONG, "[cluster] id")


def test_a_listener_that_a_broker_lacks_is_named() -> None:
    one = '[[listener]]\nname = "INNER"\nbind = "127.0.0.1:9092"\n'
    two = one + '[[listener]]\nname = "OUTER"\nbind = "127.0.0.1:9093"\n'
    (found,) = told(two, one, two)
    assert found.places == {"INNER,OUTER": ["1", "3"], "INNER": ["2"]}
    assert found.key == "[[listener]] name"


def test_harm_comes_first_and_a_release_without_the_key_is_left_out() -> None:
    brokers = {
        "1": values('id = "c"\n[access]\nsuper_users = ["User:a"]'),
        "2": values('id = "c"\n[security]\nwebhook_hosts = ["a.example"]'),
        "3": {TIMEOUT: "8000"},
    }
    found = [(one.harm.value, one.key) for one in differences(brokers)]
    assert found == [
        ("wrong", "[replication] election_timeout_ms"),
        ("wrong", "[security] webhook_hosts"),
        ("note", "[access] super_users"),
    ]


def test_the_reference_and_the_table_name_the_same_keys() -> None:
    docs = {row.name: row.doc for row in BROKER_KEYS}
    named = {one.name for one in SHARED_KEYS}
    for name in named:
        section = SECTIONS[name.rpartition(".")[0]].__doc__ or ""
        assert ON_EVERY_BROKER in f"{docs[name]} {' '.join(section.split())}", name
    assert {name for name, doc in docs.items() if ON_EVERY_BROKER in doc} <= named


def test_the_page_names_every_key() -> None:
    text = PAGE.read_text().partition("## Settings that must agree")[2].partition("\n## ")[0]
    for one in SHARED_KEYS:
        section, _, key = one.name.rpartition(".")
        assert f"[{section}]" in text and key in text, one.name
