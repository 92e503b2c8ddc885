"""What the Spark tests stand on: a cluster, a Java runtime, the jars, and topics of known content.

How:    STRANDLINE_TEST_BOOTSTRAP points the tests at any Kafka-compatible cluster; without it they
        start three brokers of their own."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.conftest import start_cluster, stop_cluster
from tests.spark.jobs import Cluster, Jobs

from strandline.pipeline.runtime.jars import JARS_VARIABLE, ensure_jars
from strandline.pipeline.runtime.java import Java, find_java
from strandline.pipeline.runtime.resolvers import default_resolvers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster that the jobs read from."""
    told = os.environ.get("STRANDLINE_TEST_BOOTSTRAP")
    if told:
        yield Cluster(told)
        return
    started = start_cluster(tmp_path_factory.mktemp("cluster"), regions="east=1,west=1,south=1")
    yield Cluster(started.bootstrap)
    stop_cluster(started)


@pytest.fixture(scope="session")
def java() -> Java:
    """A Java runtime, as `make test` installs it; where there is none, the failure says how."""
    return find_java()


@pytest.fixture(scope="session")
def jobs(cluster: Cluster, java: Java, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """Starts pipeline commands as processes."""
    directory = Path(os.environ.get(JARS_VARIABLE) or REPOSITORY / ".build" / "jars")
    jars = ensure_jars(directory, default_resolvers(java))
    scratch = tmp_path_factory.mktemp("scratch")
    return Jobs(cluster=cluster, java=java, jars=tuple(jars), scratch=scratch)


@pytest.fixture(scope="session")
def spark(jobs: Jobs) -> Iterator["SparkSession"]:
    """The session that tests share; each uses topics and directories of its own."""
    from tests.spark.session import open_spark

    with open_spark(jobs.java, jobs.jars, jobs.scratch) as session:
        yield session


@pytest.fixture
def topic_name() -> str:
    """A topic name that no other test, and no earlier run, has used."""
    return f"lake-{os.getpid()}-{uuid.uuid4().hex[:8]}"
