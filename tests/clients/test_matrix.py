"""A slice of `make clients`: the Python clients, and whether the matrix sees what is wrong."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from bench.clusters import Cluster
from clients.catalogue import CLIENTS
from clients.client import CELLS, Client, Place
from clients.jvm import judge_sessions
from clients.program import reason
from clients.records import CellError, Found, Written, judge, parse
from clients.run import check
from clients.table import Row, as_markdown, as_text
from tests.integration.conftest import start_cluster, stop_cluster

HERE = [client for client in CLIENTS if not client.downloads and not client.lacks()]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers."""
    dev = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    yield Cluster("strandline", dev.bootstrap, {}, dev.directory)
    stop_cluster(dev)


def without_group(client: Client) -> Client:
    """The cells that wait for no rebalance."""
    cells = {name: cell for name, cell in client.cells.items() if name != "group"}
    return replace(client, cells=cells, not_tried={**client.not_tried, "group": "later"})


def check_here(clients: Sequence[Client], cluster: Cluster, directory: Path) -> None:
    """All at the same time; the table is the message of a failure."""
    with ThreadPoolExecutor() as pool:
        rows = list(pool.map(lambda client: check(client, cluster, directory), clients))
    assert not any(row.is_red for row in rows), as_text(rows)


@pytest.mark.integration
def test_clients_that_are_here_produce_consume_and_administer(
    cluster: Cluster, tmp_path: Path
) -> None:
    check_here([without_group(client) for client in HERE], cluster, tmp_path)


@pytest.mark.integration
@pytest.mark.long
def test_clients_that_are_here_do_all_their_work(cluster: Cluster, tmp_path: Path) -> None:
    check_here(HERE, cluster, tmp_path)


def found(number: int, **changes: object) -> Found:
    """Record `number` as it should be read, but for `changes`."""
    record = Written(number)
    partition = int(record.key[-1]) % 2
    good = Found(partition, number, record.key, record.value, record.headers)
    return replace(good, **changes)  # type: ignore[arg-type]


def test_what_was_read_as_it_was_written_passes() -> None:
    judge([found(number) for number in range(40)], range(40), where="here")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([found(0)], r"missing \[1\]"),
        ([found(0), found(1), found(1, offset=9)], r"twice \[1\]"),
        ([found(0), found(1), found(2)], r"never written \[2\]"),
        ([found(0), found(1, key="key-5")], "has key"),
        ([found(0), found(1, value="other")], "has value"),
        ([found(0), found(1, headers=(("n", "1"),))], "has headers"),
        ([found(0, partition=0), found(1, partition=0, offset=-1)], "stands after"),
    ],
)
def test_each_kind_of_mistake_is_a_red_cell(records: list[Found], said: str) -> None:
    with pytest.raises(CellError, match=said):
        judge(records, range(2), where="here")


def test_a_key_in_two_partitions_is_a_red_cell() -> None:
    records = [found(number) for number in range(8)]
    with pytest.raises(CellError, match="several partitions"):
        judge([*records[:7], found(7, partition=1)], range(8), where="here")


def test_a_line_of_a_program_is_read_back() -> None:
    assert parse("record\t2\t7\tkey-1\t3\tabc\tn=1,empty=") == Found(
        2, 7, "key-1", "abc", (("n", "1"), ("empty", ""))
    )
    assert parse("record\t2\t7\tkey-1\t-1\t\tn=1").value is None


def test_a_cell_that_fails_is_red_and_says_why(tmp_path: Path) -> None:
    def fails(_: Place) -> None:
        raise CellError("record 3 is missing")

    client = Client(
        "some", "1.0", "a bit", {"produce": fails}, not_tried=dict.fromkeys(CELLS, "no")
    )
    row = check(client, Cluster("none", "127.0.0.1:1", {}, tmp_path), tmp_path)
    assert row.is_red
    assert "some, produce: FAIL: record 3 is missing" in as_text([row])
    assert "| some | 1.0 | FAIL: record 3 is missing | not tried: no |" in as_markdown([row])


def test_a_client_whose_tools_are_missing_says_which_command_installs_them(tmp_path: Path) -> None:
    client = Client("some", "1.0", "a bit", {}, needs={"no-such-tool": "apt-get install tool"})
    row = check(client, Cluster("none", "127.0.0.1:1", {}, tmp_path), tmp_path)
    assert row == Row(client, dict.fromkeys(CELLS, "not here: needs `apt-get install tool`"))
    assert "some: not here: needs `apt-get install tool`" in as_text([row])


def test_the_reason_of_a_program_is_its_last_telling_line() -> None:
    assert reason("warm\nError: no leader\n    at main (x.mjs:3)\n") == "Error: no leader"
    thrown = "Error [E]: no package\n    at main {\n  code: 'E'\n}\n\nNode.js v20.20.2\n"
    assert reason(thrown) == "Error [E]: no package"


FULL = "Node 1 sent a full fetch response that created a new incremental fetch session 7 with 3"
INCREMENTAL = "Node 1 sent an incremental fetch response with throttleTimeMs = 0 for session 7"
NOTHING_NEW = f"{INCREMENTAL}, 3 implied partition(s)"
ONE_NEW = f"{INCREMENTAL} with 1 response partition(s), 2 implied partition(s)"
RECORD = "record\t0\t0\tkey-0\t5\tvalue\t"
SESSION = [FULL, *[RECORD, ONE_NEW] * 3, NOTHING_NEW]


def test_a_consumer_that_reads_in_sessions_passes() -> None:
    judge_sessions(SESSION, 3)


@pytest.mark.parametrize(
    "lines",
    [
        [FULL, *[RECORD, ONE_NEW] * 2, ONE_NEW],  # A record is missing.
        [*SESSION, FULL],  # The broker forgot the session.
        [FULL.replace("7", "0"), *SESSION[1:]],
        [*SESSION, ONE_NEW.replace("session 7", "session 8")],
        [*SESSION, "Node 1 was unable to process the fetch request: INVALID_FETCH_SESSION_EPOCH."],
        [one.replace("1 response", "3 response").split(", 2")[0] for one in SESSION],
        [one for one in SESSION if "incremental fetch response" not in one],
    ],
)
def test_a_consumer_whose_answers_name_every_partition_does_not_pass(lines: list[str]) -> None:
    with pytest.raises(CellError, match="sessions: "):
        judge_sessions(lines, 3)
