"""The pages of the pipelines as a reader follows them: commands typed into a shell, Python and SQL
run in a Spark session, in a fresh directory, on a cluster of their own.

How:    what a page can only give as an example (an address, a directory, a bucket) is replaced;
        everything else is run as it stands."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.flights import SCHEMA, load_flights, write_json_lines
from pyspark.sql import SparkSession
from tests.integration.conftest import start_cluster, stop_cluster
from tests.spark.jobs import Cluster, Jobs, Record, create_topic, produce
from tests.spark.standalone import SPARK_HOME

REPOSITORY = Path(__file__).parents[2]
PAGES = REPOSITORY / "docs"
TIMEOUT_S = 300
FLIGHTS = 300

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:strandline|make|python|pip|protoc|spark-submit) [^`]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page. `language`: "" for commands."""

    page: str
    number: int
    language: str
    text: str


def pages() -> list[str]:
    """Those that the walk consists of, relative to docs."""
    return ["pipelines.md", *sorted(f"pipelines/{p.name}" for p in PAGES.glob("pipelines/*.md"))]


def blocks(page: str) -> list[Block]:
    """All blocks of a page, in order."""
    found = _BLOCK.finditer((PAGES / page).read_text())
    return [Block(page, n, each["language"], each["text"]) for n, each in enumerate(found)]


def inline_commands(page: str) -> list[str]:
    """Commands that the page names within a sentence; each once."""
    text = _BLOCK.sub("", (PAGES / page).read_text())
    return list(dict.fromkeys(" ".join(one.split()) for one in _INLINE.findall(text)))


@dataclass
class Walk:
    """A directory, a cluster, and a session."""

    directory: Path
    cluster: Cluster
    jobs: Jobs
    spark: SparkSession
    master: str = ""
    """Of a Spark cluster, for blocks that are submitted to one."""
    done: set[str] = field(default_factory=set)

    def once(self, name: str, prepare: Callable[["Walk"], None]) -> None:
        """Prepare something that several pages need."""
        if name not in self.done:
            prepare(self)
            self.done.add(name)

    @property
    def data(self) -> Path:
        """What `/data` is on the pages."""
        return self.directory / "data"

    def mended(self, text: str) -> str:
        """With this walk's places in place of the examples'."""
        for example, here in (
            ("127.0.0.1:9092", self.cluster.bootstrap),
            ("broker:9092", self.cluster.bootstrap),
            ("spark://host:7077", self.master),
            ("s3a://", f"{self.directory}/"),
            ("/data", str(self.data)),
        ):
            text = text.replace(example, here)
        return text

    def shell(self, text: str, *, more: str = "") -> str:
        """What the commands print; `more` is appended to the last one. A failure has all of it."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.mended(text).rstrip() + f" {more}\n"],
            cwd=self.directory,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, text: str, **names: Any) -> dict[str, Any]:
        """The names that a block of Python has set; it finds `spark` and `names`."""
        found: dict[str, Any] = {"spark": self.spark, **names}
        exec(compile(self.mended(text), "<page>", "exec"), found)
        return found

    def sql(self, text: str) -> None:
        """Statements in the session."""
        for statement in filter(None, map(str.strip, self.mended(text).split(";"))):
            self.spark.sql(statement)

    def produce(self, topic: str, *records: Record, partitions: int = 1) -> None:
        """A topic with these records."""
        create_topic(self.cluster, topic, partitions=partitions)
        produce(self.cluster, topic, records)

    def _environment(self) -> dict[str, str]:
        paths = [str(Path(sys.executable).parent), str(SPARK_HOME / "bin"), os.environ["PATH"]]
        return {
            **self.jobs.environment,
            "PATH": ":".join(paths),
            "STRANDLINE_BOOTSTRAP": self.cluster.bootstrap,
        }


def flights() -> list[Record]:
    """A few flights, as the demo produces them."""
    found = load_flights()
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"flights-{os.getpid()}.json"
    write_json_lines(found.iloc[:: len(found) // FLIGHTS].head(FLIGHTS), path)
    lines = path.read_bytes().splitlines()
    path.unlink()
    return [Record(b"%d" % n, line) for n, line in enumerate(lines)]


@contextmanager
def open_walk(directory: Path, jobs: Jobs, spark: SparkSession) -> Iterator[Walk]:
    """The cluster has the topics that the pages speak of; the directory what they take from the
    repository."""
    shutil.copytree(PAGES / "pipelines", directory / "docs/pipelines")
    (directory / "demo").mkdir()
    shutil.copy(SCHEMA, directory / "demo")
    started = start_cluster(directory / "cluster", regions="us=1,eu-west=1,asia=1")
    try:
        walk = Walk(directory, Cluster(started.bootstrap), jobs, spark)
        walk.produce("flights", *flights(), partitions=2)
        yield walk
    finally:
        stop_cluster(started)
