"""What pipelines may do on a cluster with rules, and what they say before Spark starts.

Source: docs/pipelines.md, "Rules that pipelines need"; decision 0069."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, start_cluster, stop_cluster, wait_until

from strandline.client.access import Access
from strandline.client.rights import MissingRightError
from strandline.pipeline.lake.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
PASSWORD = "pa55-of-mia"
READER = ("--allow-principal", "User:mia", "--operation")
ALLOW = "to allow it: strandline "


@dataclass(frozen=True)
class Secure:
    """A cluster with rules, brokers 1 in the east and 2 in the west; `config` logs in as mia."""

    directory: Path
    config: Path

    def run(self, *words: str, mia: bool = False, code: int = 0) -> str:
        """Both outputs of a command that ends with `code`, of the administrator or of mia."""
        who = ("--client-config", str(self.config)) if mia else ()
        done = subprocess.run(
            [COMMAND, *words, *who],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"STRANDLINE_DEV_DIR": str(self.directory), "JAVA_HOME": "/none"},
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert PASSWORD not in done.stdout + done.stderr
        return (done.stdout + done.stderr).lstrip()

    def make(self, topic: str, *, leader: int = 1) -> None:
        """A topic of one partition without records, with its leader on that broker."""
        self.run("topic", "create", topic, "-p", "1", "-r", "2", "--json")

    def allow(self, told: str) -> None:
        """Type what a refusal says."""
        (command,) = [line.partition(ALLOW)[2] for line in told.splitlines() if ALLOW in line]
        self.run(*shlex.split(command))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    directory = tmp_path_factory.mktemp("secure") / "cluster"
    cluster = start_cluster(directory, regions="east=1,west=1", options=("--secure",))
    word = directory / "word"
    word.write_text(PASSWORD)
    lines = (directory / "secure" / "app.conf").read_text().splitlines()
    mine = {"sasl.username": "mia", "sasl.password": PASSWORD}
    config = directory / "mia.conf"
    config.write_text(
        "\n".join(
            f"{name}={mine.get(name, text)}"
            for name, _, text in (one.partition("=") for one in lines)
        )
    )
    found = Secure(directory, config)
    found.run("user", "create", "mia", "--password-file", str(word))
    yield found
    stop_cluster(cluster)


def test_a_lake_job_names_each_right_that_it_lacks_before_spark_starts(
    secure: Secure, tmp_path: Path
) -> None:
    secure.make("orders")
    lake = ("pipeline", "lake", "orders", str(tmp_path / "lake"))
    told = secure.run(*lake, mia=True, code=1)
    assert told == (
        "error: User:mia may not read topic orders; to allow it: strandline acl create "
        "--allow-principal User:mia --operation read --topic orders\n"
    )
    secure.allow(told)
    told = secure.run(*lake, mia=True, code=1)
    assert "error: JAVA_HOME=/none has no Java" in told
    assert "group lake-lake does not show how far: User:mia may not read group lake-lake;" in told
    secure.allow(told)
    assert "may not" not in secure.run(*lake, mia=True, code=1)


def test_a_lake_job_that_may_not_see_its_topic_any_more_names_the_right(secure: Secure) -> None:
    secure.make("passing")
    secure.run("acl", "create", *READER, "read", "--topic", "passing")
    access = Access(str(secure.config))
    bootstrap = secure.config.read_text().partition("bootstrap.servers=")[2].splitlines()[0]
    with Cluster(bootstrap, access=access) as cluster:

        def told() -> str:
            """How far the topic is, or the right that is missing."""
            try:
                return str(cluster.snapshot(["passing"]).topics["passing"].ends)
            except MissingRightError as error:
                return str(error)

        # Each broker hears of rules for itself.
        wait_until(lambda: told() == "{0: 0}", what="the rule to count")
        secure.run("acl", "delete", "--topic", "passing")
        missing = "User:mia may not read topic passing; to all"
        wait_until(lambda: missing in told(), what="the rule not to count")


def test_a_rule_for_a_region_without_the_leader_is_named(secure: Secure, tmp_path: Path) -> None:
    secure.make("near")
    view = secure.run("topic", "describe", "near", "--json")
    led_by_1 = '"leader": 1' in view or '"leader":1' in view
    leader, here, other = ("1", "east", "west") if led_by_1 else ("2", "west", "east")
    rule = ("acl", "create", "--allow-principal", "User:mia", "--operation")
    secure.run(*rule, "read", "--topic", "near", "--region", other)
    secure.run(*rule, "describe", "--topic", "near")
    lake = ("pipeline", "lake", "near", str(tmp_path / "lake"))
    told = secure.run(*lake, mia=True, code=1)
    assert f"User:mia may not read topic near by broker {leader} in {here}, which leads it" in told


def test_an_audit_names_each_right_that_it_lacks(secure: Secure) -> None:
    secure.make("counted")
    audit = ("pipeline", "audit", "counted")
    told = secure.run(*audit, mia=True, code=2)
    assert told.startswith("error: User:mia may not describe the cluster; to allow it: ")
    secure.run(*shlex.split(told.partition(ALLOW)[2]), "--region", "east")
    some = secure.run(*audit, mia=True, code=2)
    assert some.startswith("error: User:mia may not describe the cluster by broker 2; ")
    assert "what buckets have: " in secure.run("tiered", "status", mia=True, code=1)
    secure.allow(some)
    told = secure.run(*audit, mia=True, code=2)
    assert told.startswith("error: User:mia may not read topic counted; to allow it: ")
    command = shlex.split(told.partition(ALLOW)[2])
    secure.run("acl", "create", *READER, "describe", "--topic", "counted")
    assert secure.run(*audit, mia=True, code=2) == told
    assert secure.run("pipeline", "audit", mia=True, code=2) == told
    secure.run(*command, "--region", "east")
    told = secure.run(*audit, mia=True, code=2)
    where = "by broker 2 in west, which has a replica"
    assert told.startswith(f"error: User:mia may not read topic counted {where}; to allow it: ")
    secure.allow(told)
    assert "equal" in secure.run(*audit, mia=True)
    assert "equal" in secure.run(*audit)
    plan = ("pipeline", "plan", "--events", "50", "--processes", "1")
    config = (secure.directory / "secure" / "app.conf").read_text()
    (secure.directory / "app.conf").write_text(config)
    told = secure.run(*plan, "--client-config", str(secure.directory / "app.conf"), code=1)
    assert told.startswith("error: User:app may not describe the cluster; ")
