"""The Java runtime is found where people have it, and refused when Spark could not use it."""

from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.runtime import java as java_module
from strandline.pipeline.runtime.java import Java, find_java, find_or_install_java, inspect_home

ALL_MODULES = "java.base java.sql jdk.incubator.vector"


def make_home(home: Path, version: str, *, modules: str | None = ALL_MODULES) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    lines = [f'JAVA_VERSION="{version}"']
    if modules is not None:
        lines.append(f'MODULES="{modules}"')
    (home / "release").write_text("\n".join(lines) + "\n")
    return home


def test_java_home_wins_over_path_and_installed_ones(tmp_path: Path) -> None:
    told = make_home(tmp_path / "told", "21.0.1")
    on_path = make_home(tmp_path / "on-path", "17.0.2")
    environment = {"JAVA_HOME": str(told), "PATH": str(on_path / "bin")}
    assert find_java(environment, install_root=tmp_path) == Java(told, 21)


def test_java_home_that_spark_cannot_use_is_refused_by_name(tmp_path: Path) -> None:
    old = make_home(tmp_path / "old", "11.0.4")
    with pytest.raises(OperatorError, match=f"JAVA_HOME={old} has no Java 17"):
        find_java({"JAVA_HOME": str(old), "PATH": ""}, install_root=tmp_path)


def test_program_on_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, install_root=tmp_path / "none") == Java(
        home, 17
    )


def test_oldest_supported_of_the_installed_ones_is_taken(tmp_path: Path) -> None:
    for version in ("11.0.4", "25.0.1", "17.0.9", "21.0.2"):
        make_home(tmp_path / f"java-{version}", version)
    assert find_java({"PATH": ""}, install_root=tmp_path).major == 17


def test_runtime_without_the_vector_module_is_not_usable(tmp_path: Path) -> None:
    assert inspect_home(make_home(tmp_path / "small", "17.0.9", modules="java.base")) is None
    assert inspect_home(make_home(tmp_path / "silent", "17.0.9", modules=None)) is not None


def test_absence_is_one_line_that_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as failure:
        find_java({"PATH": ""}, install_root=tmp_path)
    assert "install openjdk-17-jre-headless" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_nothing_is_installed_without_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(find_java, "__kwdefaults__", {"install_root": tmp_path})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(java_module, "install", lambda: pytest.fail("must not install"))
    with pytest.raises(OperatorError, match="no Java 17 or newer"):
        find_or_install_java()


def fake_apt(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """An apt-get that writes down its arguments, then does as told."""
    program = directory / "apt-get"
    program.write_text(f'#!/bin/sh\necho "$@" >> {directory}/asked\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    return directory / "asked"


def test_install_updates_the_lists_and_takes_the_headless_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = fake_apt(tmp_path, monkeypatch, "exit 0")
    java_module.install()
    first, second = asked.read_text().splitlines()
    assert first.startswith("update")
    assert second.startswith("install -y")
    assert second.endswith("openjdk-17-jre-headless")


def test_install_that_fails_tells_apts_last_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_apt(tmp_path, monkeypatch, "echo first >&2; echo 'E: no such package' >&2; exit 100")
    with pytest.raises(OperatorError, match=r"failed \(E: no such package\): install Java 17"):
        java_module.install()
