"""An audit of replicas and buckets on a cluster with TLS, logins and rules, asked by Spark's
executors.

Source: docs/pipelines/audit.md, "On a secured cluster", "Buckets" and "On a Spark cluster"."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import start_cluster, stop_cluster, wait_until
from tests.spark.jobs import Jobs, read_json
from tests.spark.standalone import spark_submit, standalone_cluster
from tests.spark.test_secured import READS, Secured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
TOPIC = "history"
REGIONS = ("east", "west")
COUNT, ROUNDS = 100, 12
"""Records of a round; each round fills segments of its own."""
RECORD = "x" * 200
SEGMENT_BYTES, LOCAL_BYTES = 10_000, 20_000
UPLOADS_S = 90


@pytest.fixture
def tiered(tmp_path: Path) -> Iterator[Secured]:
    """Two regions, each with a bucket; mia may do nothing yet."""
    directory = tmp_path / "cluster"
    settings = ("tiered.check_interval_ms=100", "storage.retention_check_interval_ms=500")
    cluster = start_cluster(
        directory,
        regions=",".join(f"{one}=1" for one in REGIONS),
        options=("--secure", "--tiered", *(word for one in settings for word in ("--set", one))),
    )
    found = Secured(directory, directory / "mia.conf")
    found.become("pa55-of-mia")
    yield found
    stop_cluster(cluster)


def fill(tiered: Secured) -> None:
    """A topic whose older half is in buckets alone."""
    configs = (
        *("remote.storage.enable=true", f"internal.segment.bytes={SEGMENT_BYTES}"),
        *(f"local.retention.bytes={LOCAL_BYTES}", "retention.ms=-1"),
    )
    words = [word for one in configs for word in ("-c", one)]
    tiered.run("topic", "create", TOPIC, "-p", "1", "-r", "2", *words)
    for number in range(ROUNDS):
        text = "".join(f"{number}-{one}-{RECORD}\n" for one in range(COUNT))
        tiered.run("produce", TOPIC, text=text)

    def is_tiered() -> bool:
        (row,) = json.loads(tiered.run("tiered", "status", TOPIC, "--json"))["partitions"]
        has_all = all(one["end_offset"] > 0 and not one["pending_bytes"] for one in row["buckets"])
        return has_all and len(row["buckets"]) == len(REGIONS) and row["local_start_offset"] > 0

    wait_until(is_tiered, what="old segments are in buckets alone", timeout_s=UPLOADS_S)


def test_an_audit_with_buckets_takes_its_two_rights_and_finds_a_wrong_byte(
    tiered: Secured, jobs: Jobs, tmp_path: Path
) -> None:
    fill(tiered)
    buckets = {one: tiered.directory / "buckets" / one for one in REGIONS}
    audit = (
        *("audit", TOPIC, "--client-config", str(tiered.config), "--json"),
        *("--buckets", ",".join(f"{name}=file://{path}" for name, path in buckets.items())),
    )
    told = jobs.run(*audit, fails=True)
    assert "User:mia may not describe the cluster; to allow it: strandline acl" in told
    tiered.run("acl", "create", *READS[:3], "describe", "--cluster")
    told = jobs.run(*audit, fails=True)
    assert f"User:mia may not read topic {TOPIC}; to allow it: strandline acl create" in told
    tiered.run("acl", "create", *READS, TOPIC)
    with standalone_cluster(tmp_path, jobs.environment) as url:

        def submit() -> tuple[int, str]:
            jars = ",".join(map(str, jobs.jars))
            done = spark_submit(url, *audit, jars=jars, environment=jobs.environment)
            assert "pa55" not in done.stdout + done.stderr
            return done.returncode, done.stdout or done.stderr

        code, out = submit()
        assert code == 0, out
        found = read_json(out)
        assert found["verdict"] == "equal"
        parts = found["partitions"]
        assert isinstance(parts, list)
        assert all(one["buckets"].keys() == set(REGIONS) for one in parts)
        assert list((tmp_path / "work").glob("app-*")), "the worker ran nothing"
        path = min(buckets["west"].rglob("*.segment"))
        data = bytearray(path.read_bytes())
        data[len(data) // 4] ^= 1
        path.write_bytes(data)
        code, out = submit()
    assert code == 1, out
    (finding,) = read_json(out)["findings"]  # type: ignore[misc]
    assert finding["buckets"] == ["west"] and finding["object_name"].endswith(path.name)
