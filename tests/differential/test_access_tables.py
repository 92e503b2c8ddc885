"""Each client with a right, and each without, gets the answer that it gets from Apache Kafka.

Why:    Kafka's answers are the measure of what a client may do, and of what a refusal shows.
How:    `differential/access` asked Kafka and recorded its answers; here a broker in virtual time
        gets the same requests of the same clients under the same rules. A difference has a row in
        docs/reference/differences.md, and a row has a difference.
Source: decision 0069; Kafka 4.3."""

from collections.abc import Iterator
from functools import cache

import pytest
from differential.access.differences import (
    Difference,
    Known,
    compare_answers,
    compare_steps,
    judge,
    read_known,
)
from differential.access.scripts import LOGINS, SCRIPT_NAMES, play_script
from differential.access.subjects import Subject
from differential.access.tables import read_script, read_table
from differential.access.walk import (
    TABLES,
    ask_all,
    prepare,
    requests_for,
    rules_for,
    versions_of,
)
from tests.differential.access_world import AccessTarget, AccessWorld

from strandline.broker.access.requirements import OPEN
from strandline.broker.handler_table import HANDLERS
from strandline.protocol.apis import APIS, OWN_APIS_FROM

REQUESTS = {(table, one.title): one for table in TABLES for one in requests_for(table)}
SLOW = {
    key
    for key, one in REQUESTS.items()
    if key[0] != "open" and (one.changes or one.title == "DescribeConfigs")
}
"""They put back what they change, or have long answers."""
SOME = (
    "nothing",
    "all",
    "READ topic",
    "CREATE topic",
    "DELETE topic",
    "DESCRIBE topic",
    "DESCRIBE_CONFIGS topic",
    "DELETE group",
    "CREATE cluster",
    "DELETE cluster",
    "ALL cluster",
    "READ topic, DELETE group",
    "all but DELETE topic",
)
"""Clients that are tested in the fast lane with requests that are slow."""
known_rows = cache(read_known)


@pytest.fixture(scope="module")
def targets() -> Iterator[dict[str, AccessTarget]]:
    """{table: a broker with what requests are about}, made as they are needed."""
    made: dict[str, AccessTarget] = {}
    yield made
    for one in made.values():
        one.world.close()


def target_of(targets: dict[str, AccessTarget], table: str) -> AccessTarget:
    if table not in targets:
        world = AccessWorld(allow_without_rules=table == "open", creates_topics=table == "creating")
        targets[table] = AccessTarget(world)
        prepare(targets[table], rules_for(table))
    return targets[table]


def differences(
    targets: dict[str, AccessTarget], key: tuple[str, str], clients: tuple[Subject, ...]
) -> list[Difference]:
    table, title = key
    versions, recorded = read_table(table)
    found: list[Difference] = []
    for version in versions_of(REQUESTS[key], versions):
        (kafka,) = (
            answers for asked, answers in recorded[title].items() if f"v{version}" in asked.split()
        )
        ours = ask_all(target_of(targets, table), clients, REQUESTS[key], version)
        found += compare_answers(title, kafka, ours)
    return found


def check(found: list[Difference], title: str, *, is_whole: bool = True) -> None:
    unknown, outdated = judge(title, found, known_rows())
    assert unknown == []
    assert outdated == [] or not is_whole, "take these rows out of the page"


def ids(key: tuple[str, str]) -> str:
    return "-".join(key)


@pytest.mark.parametrize("key", sorted(REQUESTS.keys() - SLOW), ids=ids)
def test_clients_get_kafkas_answers(targets: dict[str, AccessTarget], key: tuple[str, str]) -> None:
    check(differences(targets, key, TABLES[key[0]]), key[1], is_whole=key[0] == "rules")


@pytest.mark.parametrize("key", sorted(SLOW), ids=ids)
def test_some_clients_get_kafkas_answers(
    targets: dict[str, AccessTarget], key: tuple[str, str]
) -> None:
    clients = tuple(one for one in TABLES[key[0]] if one.title in SOME)
    check(differences(targets, key, clients), key[1], is_whole=False)


@pytest.mark.parametrize("key", sorted(SLOW), ids=ids)
def test_all_clients_get_kafkas_answers(
    targets: dict[str, AccessTarget], key: tuple[str, str]
) -> None:
    check(differences(targets, key, TABLES[key[0]]), key[1])


@pytest.mark.parametrize("script", SCRIPT_NAMES)
def test_changes_of_rules_and_users_get_kafkas_answers(script: str) -> None:
    world = AccessWorld(has_logins=script == LOGINS)
    ours = play_script(script, AccessTarget(world))
    world.close()
    check(compare_steps(script, read_script(script), ours), script)


def test_each_api_that_kafka_has_is_asked() -> None:
    offered = {key for key in HANDLERS if key < OWN_APIS_FROM and APIS[key].name not in OPEN}
    nowhere = dict.fromkeys(("orders", "absent", "hidden"))
    assert {one.make(nowhere).API_KEY for one in REQUESTS.values()} == offered


def test_each_known_difference_is_of_a_request_or_a_script() -> None:
    titles = {title for _, title in REQUESTS} | set(SCRIPT_NAMES)
    assert {one.request for one in known_rows()} <= titles


def test_a_difference_is_named_by_the_part_of_the_answer() -> None:
    kafka = {"a/0 NONE; b/0 NONE offset": ["one", "two"]}
    ours = {"a/0 NONE; b/0 NONE": ["one"], "a/0 NONE": ["two"]}
    found = compare_answers("Fetch", kafka, ours)
    assert found == [
        Difference("Fetch", "b/0", "NONE offset", "NONE", ("one",)),
        Difference("Fetch", "b/0", "NONE offset", "-", ("two",)),
    ]
    rows = [Known("Fetch", "b/*", "*", "-", "A reason."), Known("Fetch", "c", "-", "-", "Old.")]
    assert judge("Fetch", found, rows) == (found[:1], rows[1:])
