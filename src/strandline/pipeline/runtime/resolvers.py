"""Two ordinary clients of Maven Central: Ivy, which PySpark brings along, and Maven.

Why:    Ivy needs nothing that a Spark job does not need anyway; Maven knows the mirrors and
        credentials of its own settings, where a network has those.
How:    each writes a module that names the wanted artefacts and nothing below them, runs the
        client in a scratch directory, and lets it copy the jars to where `jars.ensure_jars`
        checks them."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.pipeline.runtime.jars import Jar, Resolver
from strandline.pipeline.runtime.java import Java

_RESOLVE_TIMEOUT_S = 300


def default_resolvers(java: Java) -> list[Resolver]:
    """Ivy from the PySpark installation, then Maven when it is on PATH."""
    return [IvyResolver(java), MavenResolver(java)]


@dataclass(frozen=True, slots=True)
class IvyResolver:
    """Resolves with the Ivy that PySpark ships, exactly the listed artefacts and nothing beside."""

    java: Java

    def __call__(self, jars: Sequence[Jar], directory: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="strandline-ivy-") as scratch:
            module = Path(scratch) / "ivy.xml"
            module.write_text(render_ivy_module(jars))
            command = [
                *(str(self.java.program), "-jar", str(_ivy_jar()), "-warn"),
                *("-cache", f"{scratch}/cache", "-ivy", str(module), "-types", "jar"),
                *("-retrieve", f"{directory}/[artifact]-[revision].[ext]"),
            ]
            _run(command, name="Ivy", directory=scratch, java=self.java)


@dataclass(frozen=True, slots=True)
class MavenResolver:
    """Resolves with `mvn`, which knows the mirrors and credentials of its own settings."""

    java: Java

    def __call__(self, jars: Sequence[Jar], directory: Path) -> None:
        program = shutil.which("mvn")
        if program is None:
            raise OperatorError("Maven: not installed")
        with tempfile.TemporaryDirectory(prefix="strandline-mvn-") as scratch:
            (Path(scratch) / "pom.xml").write_text(render_pom(jars))
            command = [
                *(program, "-q", "-B"),
                "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
                f"-DoutputDirectory={directory}",
            ]
            _run(command, name="Maven", directory=scratch, java=self.java)


def render_ivy_module(jars: Sequence[Jar]) -> str:
    """An Ivy module that depends on each jar's own file (configuration `master`) alone."""
    lines = [
        '<ivy-module version="2.0">',
        '<info organisation="strandline" module="pipeline"/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
        *(
            f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}"'
            ' conf="default->master" transitive="false"/>'
            for jar in jars
        ),
        "</dependencies>",
        "</ivy-module>",
    ]
    return "\n".join(lines) + "\n"


def render_pom(jars: Sequence[Jar]) -> str:
    """A Maven project that depends on each jar and excludes everything below it."""
    exclusions = (
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
        "</exclusions>"
    )
    lines = [
        '<project xmlns="http://maven.apache.org/POM/4.0.0">',
        "<modelVersion>4.0.0</modelVersion>",
        "<groupId>strandline</groupId><artifactId>pipeline</artifactId><version>1</version>",
        "<dependencies>",
        *(
            f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
            f"<version>{jar.version}</version>{exclusions}</dependency>"
            for jar in jars
        ),
        "</dependencies>",
        "</project>",
    ]
    return "\n".join(lines) + "\n"


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise OperatorError("Ivy: PySpark is not installed (pip install 'strandline[pipeline]')")
    found = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise OperatorError(f"Ivy: not among the jars of {Path(spec.origin).parent}")
    return found[-1]


def _run(command: Sequence[str], *, name: str, directory: str, java: Java) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "JAVA_HOME": str(java.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_RESOLVE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OperatorError(f"{name}: no answer within {_RESOLVE_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise OperatorError(f"{name}: {_first_reason(done.stdout + done.stderr)}")


def _first_reason(output: str) -> str:
    """The line of a resolver's output that says most, shortened to a piece of one line."""
    lines = [line.strip(" \t:[]") for line in output.splitlines()]
    telling = [
        line
        for line in lines
        if any(word in line.lower() for word in ("not found", "error", "unresolved", "exception"))
    ]
    return (telling or lines or ["no output"])[0][:160]
