"""The jars that Spark needs for topics and lake tables: pinned, resolved once, checked each time.

Why:    PySpark ships neither the Kafka connector nor a table format; a job must run the same
        bytes everywhere.
How:    a directory of jars; what is missing or differs from its pinned SHA-256 is resolved from
        Maven Central by the resolvers (resolvers.py) in turn. Only the listed artefacts are
        taken: everything else that they depend on ships with PySpark 4.2.0.
Owns:   the jar directory; files appear there whole and checked (renamed into place) or not at
        all.
Source: https://spark.apache.org/docs/latest/streaming/structured-streaming-kafka-integration.html"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError

JARS_VARIABLE = "STRANDLINE_JARS"


@dataclass(frozen=True, slots=True)
class Jar:
    """One Maven artefact and the SHA-256 of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the directory of jars, as Maven names it."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`, as Maven and Spark write it."""
        return f"{self.group}:{self.artifact}:{self.version}"


# Central lacks the token provider of 4.2.0; the connector runs with this one (decisions/0003).
JARS: tuple[Jar, ...] = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.1.0-preview1",
        "ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)

Resolver = Callable[[Sequence[Jar], Path], None]
"""Puts the named jars into a directory under their `file_name`, or raises OperatorError."""


def default_directory() -> Path:
    """The default directory of jars: STRANDLINE_JARS, else the user's cache."""
    told = os.environ.get(JARS_VARIABLE)
    if told:
        return Path(told)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "strandline" / "jars"


def missing_jars(directory: Path, jars: Iterable[Jar] = JARS) -> list[Jar]:
    """The jars that `directory` lacks, or that differ from the pinned ones."""
    return [jar for jar in jars if _digest(directory / jar.file_name) != jar.sha256]


def ensure_jars(
    directory: Path, resolvers: Sequence[Resolver], *, jars: Sequence[Jar] = JARS
) -> list[Path]:
    """The paths of all jars in `directory`; the missing ones are resolved first.

    The resolvers are tried in order. Raises OperatorError, one line that says what to do.
    """
    directory = directory.absolute()  # the resolvers work in directories of their own
    missing = missing_jars(directory, jars)
    if missing:
        _resolve(missing, directory, resolvers)
    return [directory / jar.file_name for jar in jars]


def _resolve(missing: Sequence[Jar], directory: Path, resolvers: Sequence[Resolver]) -> None:
    reasons: list[str] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Beside the final place, so that a rename never crosses file systems.
        with tempfile.TemporaryDirectory(prefix=".resolving-", dir=directory) as staging:
            for resolver in resolvers:
                try:
                    resolver(missing, Path(staging))
                except OperatorError as error:
                    reasons.append(str(error))
                    continue
                absent = [jar.coordinate for jar in missing if not _is_in(staging, jar)]
                if absent:
                    reasons.append(f"{', '.join(absent)} missing")
                    continue
                _check(missing, Path(staging))
                for jar in missing:
                    os.replace(Path(staging) / jar.file_name, directory / jar.file_name)
                return
    except OSError as error:
        raise OperatorError(f"{directory}: {error.strerror}: choose another --jars") from error
    names = ", ".join(jar.coordinate for jar in missing)
    raise OperatorError(
        f"cannot resolve {names} ({'; '.join(reasons)}): give this machine access to Maven"
        f" Central, or copy the jars into {directory}"
    )


def _is_in(directory: str, jar: Jar) -> bool:
    return (Path(directory) / jar.file_name).exists()


def _check(jars: Iterable[Jar], directory: Path) -> None:
    for jar in jars:
        found = _digest(directory / jar.file_name)
        if found != jar.sha256:
            raise OperatorError(
                f"{jar.coordinate}: expected SHA-256 {jar.sha256}, the repository served "
                f"{found}: do not use it; check which repository answers"
            )


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # absent or unreadable: either way it must be resolved again
        return None
