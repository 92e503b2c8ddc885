"""`strandline group list` never leaves groups out without a word, on a cluster in memory.

Source: docs/reference/cli.md."""

import json

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster

from strandline.client.operations.group_list import OFFSETS_TOPIC
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.


@pytest.fixture
def groups(cluster: FakeCluster) -> FakeCluster:
    """Brokers 1 to 3 coordinate one group each, and two partitions."""
    cluster.add_topic(OFFSETS_TOPIC, 6)
    cluster.extra["ListGroups"] = listed
    return cluster


def listed(fake: FakeCluster, broker: int, request: Message) -> Message:
    found = ListedGroup(f"g{broker}", protocol_type="consumer", group_state="Stable")
    return ListGroupsResponse(error_code=fake.fault_code, groups=[found])


def names(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[1:]]


def test_a_whole_list_is_a_success(run: Run, groups: FakeCluster) -> None:
    code, out, err = run("group", "list")
    assert (code, names(out), err) == (0, ["g1", "g2", "g3"], "")
    assert json.loads(run("group", "list", "--json")[1])["missing_partitions"] == []


def test_groups_of_a_silent_coordinator_are_named_as_missing(run: Run, groups: FakeCluster) -> None:
    groups.down.add(2)
    code, out, err = run("group", "list")
    assert (code, names(out)) == (1, ["g1", "g3"])
    assert err.splitlines()[0].startswith(
        "error: the list is incomplete: the groups of 2 of 6 partitions of __consumer_offsets are "
        "missing; see "
    )
    assert err.splitlines()[1] == "  no coordinator: groups in partitions 1,4"
    code, out, _ = run("group", "list", "--json")
    assert (code, json.loads(out)["missing_partitions"]) == (1, [1, 4])


def test_a_coordinator_that_hangs_costs_the_list_its_groups_only(
    run: Run, groups: FakeCluster
) -> None:
    groups.silent.add(3)
    code, out, err = run("group", "list")
    assert (code, names(out)) == (1, ["g1", "g2"])
    assert err.splitlines()[1] == "  broker 3 does not answer: groups in partitions 2,5"


def test_a_coordinator_that_loads_its_groups_is_asked_again(run: Run, groups: FakeCluster) -> None:
    groups.faults["ListGroups"] = [int(Error.COORDINATOR_LOAD_IN_PROGRESS)] * 2
    code, out, _ = run("group", "list")
    assert (code, names(out)) == (0, ["g1", "g2", "g3"])


def test_a_cluster_without_groups_has_a_whole_list(run: Run, cluster: FakeCluster) -> None:
    cluster.extra["ListGroups"] = lambda *_: ListGroupsResponse()
    code, out, err = run("group", "list", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"groups": [], "missing_partitions": []}


def test_a_name_steers_no_terminal_and_forges_no_row(run: Run, groups: FakeCluster) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2Jg\x9b31m\u202eevil\ng9  Stable"

    def answer(fake: FakeCluster, broker: int, request: Message) -> Message:
        found = ListedGroup(hostile, protocol_type="consumer", group_state="Stable")
        return ListGroupsResponse(groups=[found] if broker == 1 else [])

    groups.extra["ListGroups"] = answer
    code, out, _ = run("group", "list")
    assert code == 0 and len(out.splitlines()) == 2
    assert "\\x1b]0;owned\\x07\\x1b[2Jg\\x9b31m\\u202eevil\\x0ag9  Stable" in out
    code, out, _ = run("group", "list", "--json")
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    (row,) = json.loads(out)["groups"]
    assert hostile in row.values()
