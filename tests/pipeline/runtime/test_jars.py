"""Jars are pinned, checked, and appear whole or not at all."""

import hashlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.runtime.jars import JARS, Jar, default_directory, ensure_jars, missing_jars
from strandline.pipeline.runtime.resolvers import render_ivy_module, render_pom


def jar_of(content: bytes, *, artifact: str = "thing") -> Jar:
    return Jar("org.example", artifact, "1.0", hashlib.sha256(content).hexdigest())


class FakeRepository:
    """A resolver that serves what it is told and remembers what it was asked for."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = contents
        self.asked: list[str] = []

    def __call__(self, jars: Sequence[Jar], directory: Path) -> None:
        self.asked += [jar.artifact for jar in jars]
        for jar in jars:
            if jar.artifact not in self.contents:
                raise OperatorError(f"fake: {jar.artifact} not found")
            (directory / jar.file_name).write_bytes(self.contents[jar.artifact])


def test_every_jar_is_pinned_by_version_and_sha256() -> None:
    for jar in JARS:
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256)
        assert re.match(r"\d+\.\d+", jar.version)
    assert len({jar.file_name for jar in JARS}) == len(JARS)


def test_connector_and_table_format_match_the_installed_pyspark() -> None:
    from importlib.metadata import version

    spark = version("pyspark")
    versions = {jar.artifact: jar.version for jar in JARS}
    assert versions["spark-sql-kafka-0-10_2.13"] == spark
    assert f"delta-spark_{spark.rpartition('.')[0]}_2.13" in versions


def test_missing_jars_are_resolved_once_and_kept(tmp_path: Path) -> None:
    jar = jar_of(b"bytes")
    repository = FakeRepository(thing=b"bytes")
    for _ in range(2):
        assert ensure_jars(tmp_path / "jars", [repository], jars=[jar]) == [
            tmp_path / "jars" / "thing-1.0.jar"
        ]
    assert repository.asked == ["thing"]
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["thing-1.0.jar"]


def test_only_what_is_missing_or_damaged_is_resolved(tmp_path: Path) -> None:
    good, damaged = jar_of(b"good", artifact="good"), jar_of(b"whole", artifact="damaged")
    (tmp_path / good.file_name).write_bytes(b"good")
    (tmp_path / damaged.file_name).write_bytes(b"who")
    assert missing_jars(tmp_path, [good, damaged]) == [damaged]
    repository = FakeRepository(damaged=b"whole")
    ensure_jars(tmp_path, [repository], jars=[good, damaged])
    assert repository.asked == ["damaged"]
    assert missing_jars(tmp_path, [good, damaged]) == []


def test_bytes_other_than_the_pinned_ones_are_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="expected SHA-256"):
        ensure_jars(tmp_path, [FakeRepository(thing=b"evil")], jars=[jar_of(b"good")])
    assert list(tmp_path.iterdir()) == []


def test_second_resolver_is_asked_when_the_first_fails(tmp_path: Path) -> None:
    jar = jar_of(b"bytes")
    ensure_jars(tmp_path, [FakeRepository(), FakeRepository(thing=b"bytes")], jars=[jar])
    assert missing_jars(tmp_path, [jar]) == []


def test_relative_directory_means_the_same_place_to_every_resolver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[Path] = []

    def resolver(jars: Sequence[Jar], directory: Path) -> None:
        told.append(directory)
        FakeRepository(thing=b"bytes")(jars, directory)

    found = ensure_jars(Path("jars"), [resolver], jars=[jar_of(b"bytes")])
    assert told[0].is_relative_to(tmp_path / "jars")
    assert found == [tmp_path / "jars" / "thing-1.0.jar"]


def test_resolver_that_brings_nothing_is_passed_over(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"org\.example:thing:1\.0 missing"):
        ensure_jars(tmp_path, [lambda jars, directory: None], jars=[jar_of(b"bytes")])


def test_failure_of_all_resolvers_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as failure:
        ensure_jars(tmp_path / "jars", [FakeRepository()], jars=[jar_of(b"bytes")])
    message = str(failure.value)
    assert "\n" not in message
    assert "org.example:thing:1.0" in message
    assert f"copy the jars into {tmp_path / 'jars'}" in message


def test_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="choose another --jars"):
        ensure_jars(tmp_path / "file" / "jars", [FakeRepository()], jars=[jar_of(b"")])


def test_variable_names_the_directory_else_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STRANDLINE_JARS", str(tmp_path / "here"))
    assert default_directory() == tmp_path / "here"
    monkeypatch.delenv("STRANDLINE_JARS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "strandline" / "jars"


def test_ivy_module_and_pom_name_exactly_the_jars_and_nothing_below_them() -> None:
    ivy = ElementTree.fromstring(render_ivy_module(JARS))
    dependencies = ivy.findall("dependencies/dependency")
    assert [(each.get("org"), each.get("name"), each.get("rev")) for each in dependencies] == [
        (jar.group, jar.artifact, jar.version) for jar in JARS
    ]
    assert {each.get("transitive") for each in dependencies} == {"false"}
    space = "{http://maven.apache.org/POM/4.0.0}"
    pom = ElementTree.fromstring(render_pom(JARS))
    versions = [node.text for node in pom.findall(f"{space}dependencies/*/{space}version")]
    assert versions == [jar.version for jar in JARS]
    assert len(pom.findall(f".//{space}exclusion")) == len(JARS)
