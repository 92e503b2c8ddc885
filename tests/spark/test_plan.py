"""A plan on Spark executors gives what this machine gives, in any number of partitions.

Source: docs/pipelines/plan.md, "Where it runs"."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.plan.described import cluster_of, plan_of
from tests.spark.jobs import Cluster, Jobs, read_json
from tests.spark.standalone import spark_submit, standalone_cluster

from strandline.pipeline.plan.assumptions import Assumptions
from strandline.pipeline.plan.results import results_of
from strandline.pipeline.plan.runs import run_here, run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_one_partition_two_and_this_machine_give_the_same(spark: "SparkSession") -> None:
    plan = plan_of(cluster_of(3, zones=2, brokers=2), ["rf3", "2+2+1o"], Assumptions())
    seen: list[int] = []
    one = run_on_spark(spark, plan, 20, partitions=1)
    two = run_on_spark(spark, plan, 20, partitions=2, on_progress=seen.append)
    assert one == two == run_here(plan, 20)
    assert results_of(plan, one) == results_of(plan, two)
    assert seen[-1] == 20


def test_a_running_cluster_describes_itself(jobs: Jobs, cluster: Cluster) -> None:
    words = ("plan", "--bootstrap", cluster.bootstrap, "--policy", "1+1+1", "--events", "1")
    told = read_json(jobs.run(*words, "-p", "4", "--processes", "1", "--json"))
    assert told["brokers"] == 3
    assert sorted(told["regions"]) == ["east", "south", "west"]
    refused = jobs.run(*words[:4], "1+1+1+1", fails=True)
    assert refused.count("\n") == 1 and "4 regions" in refused


@pytest.mark.long
def test_a_plan_through_spark_submit_is_the_plan_of_this_machine(
    jobs: Jobs, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("brokers: [{count: 2, region: a}, {count: 2, region: b}, {region: c}]")
    words = ("plan", str(file), "--policy", "rf3", "--policy", "2+2+1", "--events", "1", "--json")
    with standalone_cluster(tmp_path, jobs.environment) as url:
        done = spark_submit(
            url, *words, jars=",".join(map(str, jobs.jars)), environment=jobs.environment
        )
    assert done.returncode == 0, done.stderr
    told, here = read_json(done.stdout), read_json(jobs.run(*words))
    del told["took_ms"], here["took_ms"]
    assert told == here
