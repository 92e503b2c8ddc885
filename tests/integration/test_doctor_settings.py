"""`strandline doctor settings` of real brokers: a broker whose file differs is named.

Source: docs/operating/brokers.md, "Settings that must agree"; decision 0073."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S, wait_until
from tests.integration.secure_cluster import SecureCluster, plain_listener, secure_cluster

from strandline.base.json_value import Json

pytestmark = pytest.mark.integration

TIMEOUT = "[replication] election_timeout_ms"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SecureCluster]:
    """Three brokers, of which the third one has a longer time-out."""
    with secure_cluster(tmp_path, count=3) as cluster:
        for one in cluster.brokers.values():
            one.sections = plain_listener("OPEN", one.ports[0])
        cluster.brokers[3].sections += "[replication]\nelection_timeout_ms = 2000\n"
        cluster.start()
        yield cluster


def doctor(*arguments: str) -> tuple[int, dict[str, Json]]:
    """The exit code, and what it tells."""
    done = subprocess.run(
        [COMMAND, "doctor", "settings", "--json", *arguments],
        capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
    )  # fmt: skip
    assert not done.stderr
    return done.returncode, json.loads(done.stdout)


def at_risk(cluster: SecureCluster) -> list[str]:
    """What `strandline cluster status` shows."""
    done = subprocess.run(
        [COMMAND, "cluster", "status", "--json", "-b", cluster.bootstrap(0)],
        capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
    )  # fmt: skip
    text: dict[str, list[str]] = json.loads(done.stdout)["text"]
    return text.get("at risk", [])


def has_all(cluster: SecureCluster) -> bool:
    """Whether every broker knows the others."""
    return doctor("-b", cluster.bootstrap(0))[1]["compared"] == ["1", "2", "3"]


def test_a_broker_with_a_longer_election_timeout_is_named_until_its_file_is_mended(
    cluster: SecureCluster,
) -> None:
    wait_until(lambda: has_all(cluster), what="all brokers are compared")
    code, told = doctor("-b", cluster.bootstrap(0))
    assert code == 1
    (finding,) = told["findings"]
    assert (finding["level"], finding["key"]) == ("wrong", TIMEOUT)
    assert finding["values"] == {"800": ["1", "2"], "2000": ["3"]}
    assert finding["advice"] == (
        "write the value of brokers 1,2 in the file of broker 3, and restart that broker"
    )
    wait_until(
        lambda: any("2000 on broker 3" in one for one in at_risk(cluster)),
        what="the state of the cluster names the broker",
        timeout_s=90,
    )
    odd = cluster.brokers[3]
    odd.stop()
    wait_until(
        lambda: list(doctor("-b", cluster.bootstrap(0))[1]["not_compared"]) == ["3"],
        what="the broker that is down is named as not compared",
    )
    odd.sections = plain_listener("OPEN", odd.ports[0])
    odd.start(cluster.seeds)
    odd.wait_serving(2)
    wait_until(lambda: has_all(cluster), what="all brokers are compared again")
    code, told = doctor("-b", cluster.bootstrap(0))
    assert (code, told["findings"], told["not_compared"]) == (0, [], {})


def test_files_of_brokers_are_compared_too(cluster: SecureCluster) -> None:
    files = [
        word
        for one in cluster.brokers.values()
        for word in ("--config", str(one.directory / "broker.toml"))
    ]
    code, told = doctor(*files)
    assert code == 1
    assert [one["key"] for one in told["findings"]] == [TIMEOUT]
    assert doctor(*files[:4])[0] == 0
