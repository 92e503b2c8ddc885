"""Real brokers are scraped over HTTP while a topic with observers is written, while a region is
killed, and until they end.

Source: docs/decisions/0023-metrics.md; docs/operating/monitoring.md."""

import json
import math
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.admin.reading_html import Read
from tests.integration.conftest import (
    COMMAND,
    DevCluster,
    start_cluster,
    stop_cluster,
    wait_until,
)
from tests.integration.placed_load import PARTITIONS, TOPIC, Load
from tests.integration.ports import free_ports

from strandline.admin.metric_table import METRICS, PARTITION_METRICS

pytestmark = pytest.mark.integration

TIMEOUT_S = 30
BROKERS = (1, 2, 3, 4, 5)
POLICY = """
rules:
  - {count: 3, where: [{label: region, op: in, values: [east, south]}]}
  - {role: observer, count: 2, where: [{label: region, op: in, values: [west]}]}
"""
Labels = frozenset[tuple[str, str]]
Told = dict[str, dict[Labels, float]]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[DevCluster, dict[int, str]]]:
    """Five brokers in three regions, and where each is scraped."""
    base = free_ports(1)[0]
    options = ("--set", f"metrics.port={base}")
    cluster = start_cluster(tmp_path / "cluster", regions="east=2,west=2,south=1", options=options)
    yield cluster, {one: f"http://127.0.0.1:{base + one - 1}" for one in BROKERS}
    stop_cluster(cluster)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        body = answer.read()
    assert isinstance(body, bytes)
    return body.decode()


def scrape(url: str) -> Told:
    found: Told = {}
    for family in text_string_to_metric_families(fetch(f"{url}/metrics")):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def is_gone(url: str) -> bool:
    try:
        fetch(f"{url}/healthz")
    except urllib.error.HTTPError:
        return False
    except OSError:
        return True
    return False


def of_partitions(pages: dict[int, str], name: str) -> dict[int, float]:
    """{partition of the topic: what its leader tells of it}. NaN, which equals nothing, where two
    tell of it: pages may be a second old."""
    found: dict[int, float] = {}
    for url in pages.values():
        for labels, value in scrape(url).get(name, {}).items():
            told = dict(labels)
            if told["topic"] == TOPIC:
                index = int(told["partition"])
                found[index] = math.nan if index in found else value
    return found


def controller(pages: dict[int, str]) -> Told:
    """What the one controller tells; nothing while there is none."""
    found = [told for told in map(scrape, pages.values())
             if told["strandline_controller_active"][frozenset()]]  # fmt: skip
    return found[0] if found else {}


def alarms(pages: dict[int, str], kind: str) -> float:
    told = controller(pages).get("strandline_controller_alarms", {})
    return told.get(frozenset({("class", kind)}), -1)


def status_counts(cluster: DevCluster) -> dict[int, dict[str, int]]:
    shown = cluster.run("replica", "status", "--topics", TOPIC, "--json", "-b", cluster.bootstrap)
    return {one["partition"]: one["metrics"] for one in json.loads(shown.stdout)["partitions"]}


def test_brokers_are_scraped_while_a_region_comes_and_goes(
    watched: tuple[DevCluster, dict[int, str]], tmp_path: Path
) -> None:
    cluster, pages = watched
    where = ("--bootstrap", cluster.bootstrap)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    cluster.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "--policy", str(file), *where)
    everywhere = {one: float(3) for one in range(PARTITIONS)}
    load = Load(cluster.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        for name, value in (("in_sync_replicas", 3), ("observer_replicas", 2), ("replicas", 5)):
            metric = f"strandline_partition_{name}"
            wait_until(
                lambda m=metric, v=value: of_partitions(pages, m) == dict.fromkeys(everywhere, v),  # type: ignore[misc]
                what=metric,
            )
        expect_same_as_status(cluster, pages)
        expect_roles(pages)
        written = sum(of_partitions(pages, "strandline_partition_log_end_offset").values())
        wait_until(
            lambda: (
                sum(of_partitions(pages, "strandline_partition_log_end_offset").values()) > written
            ),
            what="more records, as told",
        )
        wait_until(lambda: alarms(pages, "region") == 0, what="calm")
        for one in (3, 4):
            cluster.kill(one)
        assert all(is_gone(pages[one]) for one in (3, 4))
        left = {one: pages[one] for one in (1, 2, 5)}
        west: Labels = frozenset({("region", "west"), ("zone", "")})
        wait_until(lambda: alarms(left, "region") == 1, what="the alarm", timeout_s=90)
        assert controller(left)["strandline_controller_domain_down"][west] == 1
        assert controller(left)["strandline_controller_domain_held"][west] == 1
        # A machine that has more to do than it can makes a broker silent for a moment.
        wait_until(
            lambda: (
                of_partitions(left, "strandline_partition_caught_up_replicas") == everywhere
                and of_partitions(left, "strandline_partition_in_sync_replicas") == everywhere
                and not any(of_partitions(left, "strandline_partition_under_replicated").values())
            ),
            what="all voters in sync",
        )
        assert set(of_partitions(left, "strandline_partition_not_caught_up").values()) == {1}
        expect_same_as_status(cluster, left)
        assert "region" in {one["class"] for one in outages(left)["happenings"]}
        assert "region" in shown_alarms(left)
        for one in (3, 4):
            cluster.start(one)
        wait_until(lambda: alarms(pages, "region") == 0, what="the end of the alarm", timeout_s=90)
        wait_until(
            lambda: set(of_partitions(pages, "strandline_partition_not_caught_up").values()) == {0},
            what="all caught up",
            timeout_s=90,
        )
        assert "region" not in shown_alarms(pages)
    finally:
        load.stop()
    assert load.failed == []
    cluster.kill(5)
    left = {one: pages[one] for one in (1, 2, 3, 4)}
    wait_until(
        lambda: (
            of_partitions(left, "strandline_partition_in_sync_replicas")
            == dict.fromkeys(everywhere, 2)
        ),
        what="a voter less",
    )
    assert set(of_partitions(left, "strandline_partition_under_replicated").values()) == {1}


def outages(pages: dict[int, str]) -> dict[str, Any]:
    """What the controller tells of outages; the others refer to it."""
    told, referred = [], set()
    for url in pages.values():
        try:
            told.append(json.loads(fetch(f"{url}/v1/outages")))
        except urllib.error.HTTPError as error:
            assert error.code == 503
            referred.add(json.loads(error.read())["controller"])
    (one,) = told
    assert referred == {one["told_by"]}
    return one


def shown_alarms(pages: dict[int, str]) -> set[str]:
    """The classes of the alarms on the controller's page; those of the others name it."""
    shown, referred = {}, set()
    for broker, url in pages.items():
        page = Read(fetch(url))
        page.expect_safe()
        assert {one["BROKER"] for one in page.tables["brokers"]} == set(map(str, BROKERS))
        if "zones" in page.tables:
            shown[broker] = {one["CLASS"] for one in page.tables.get("alarms", [])}
        else:
            referred.add(page.texts["controller"].partition(" is not it: ")[2].split()[1])
    ((controller, classes),) = shown.items()
    assert referred == {str(controller)}
    return classes


def expect_shown_roles(url: str) -> int:
    """The page of the topic shows every role; of how many partitions it says who is in sync."""
    assert f"/topics/{TOPIC}" in Read(fetch(f"{url}/topics")).links
    found = Read(fetch(f"{url}/topics/{TOPIC}")).tables["replicas"]
    assert len(found) == PARTITIONS * 5
    assert {one["REPLICA"] for one in found if one["ROLE"] == "observer"} == {"3", "4"}
    assert {one["REPLICA"] for one in found if one["ROLE"] == "voter"} == {"1", "2", "5"}
    return sum(one["LEADER"] == one["REPLICA"] and one["IN SYNC"] == "yes" for one in found)


def expect_roles(pages: dict[int, str]) -> None:
    """Every broker tells the same roles; of each partition one tells how far the replicas are."""
    tellers = [0] * PARTITIONS
    assert sum(map(expect_shown_roles, pages.values())) == PARTITIONS
    for url in pages.values():
        for one in json.loads(fetch(f"{url}/v1/topics/{TOPIC}"))["partitions"]:
            assert sorted(one["observers"]) == [3, 4]
            assert sorted(one["voters"]) == [1, 2, 5]
            tellers[one["partition"]] += one["status"] is not None
    assert tellers == [1] * PARTITIONS


def expect_same_as_status(cluster: DevCluster, pages: dict[int, str]) -> None:
    """`strandline replica status` and the metrics with Kafka's names beside them say the same."""
    names = {one.kafka.rpartition("=")[2]: one.name for one in PARTITION_METRICS}

    def same() -> bool:
        status = status_counts(cluster)
        kafka = {one for counts in status.values() for one in counts}
        return bool(kafka) and all(
            of_partitions(pages, names[one])
            == {index: float(counts[one]) for index, counts in status.items()}
            for one in kafka
        )

    wait_until(same, what="the same counts")


def test_a_broker_that_waits_for_others_is_healthy_and_not_ready(tmp_path: Path) -> None:
    kafka_port, rpc_port, other_port, port = free_ports(4)
    file = tmp_path / "broker.toml"
    file.write_text(f"""
[broker]
id = 1
data_directory = "{tmp_path / "data"}"
[cluster]
seeds = ["1@127.0.0.1:{rpc_port}", "2@127.0.0.1:{other_port}"]
[listener]
kafka_port = {kafka_port}
[rpc]
port = {rpc_port}
[metrics]
port = {port}
""")
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen([COMMAND, "serve", "--config", str(file)]) as broker:
        try:
            wait_until(lambda: not is_gone(url), what="the port for metrics")
            assert fetch(f"{url}/healthz") == "ok\n"
            with pytest.raises(urllib.error.HTTPError) as refused:
                fetch(f"{url}/readyz")
            assert refused.value.code == 503
            refused.value.close()
            with pytest.raises(urllib.error.HTTPError) as unready:
                fetch(url)
            assert unready.value.code == 503
            assert unready.value.read().startswith(b"This broker does not serve clients yet")
            told = scrape(url)
            assert told["strandline_broker_ready"][frozenset()] == 0
            assert told["strandline_leaders"][frozenset()] == 0
            assert told["strandline_controller_active"][frozenset()] == 0
        finally:
            broker.send_signal(signal.SIGTERM)
            broker.wait(TIMEOUT_S)
    assert broker.returncode == 0 and is_gone(url)


def test_a_broker_tells_what_is_in_the_table_and_whether_it_serves(
    watched: tuple[DevCluster, dict[int, str]],
) -> None:
    cluster, pages = watched
    known = {one.name for one in METRICS}
    wait_until(
        lambda: all(
            sorted(scrape(url)["strandline_peer_up"].values()) == [1, 1, 1, 1]
            for url in pages.values()
        ),
        what="every broker hears the others",
    )
    told = [scrape(url) for url in pages.values()]
    for one in told:
        assert {name for name in one if not name.startswith("process_")} <= known
        assert one["strandline_broker_ready"][frozenset()] == 1
        assert one["process_resident_memory_bytes"][frozenset()] > 1e6
        assert one["strandline_disk_free_bytes"][frozenset()] > 0
    wait_until(lambda: bool(controller(pages)), what="one controller")
    assert all(fetch(f"{url}/readyz") == "ready\n" for url in pages.values())
    with urllib.request.urlopen(f"{pages[1]}/metrics") as unread:
        stopped = cluster.run("dev", "stop", "--dir", str(cluster.directory), "--json")
        assert json.loads(stopped.stdout)["killed"] == []
        assert unread.status == 200
    assert all(map(is_gone, pages.values()))
