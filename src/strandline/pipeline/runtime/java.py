"""Finds a Java runtime that Spark can run on, and installs one where that is possible.

Why:    Spark 4.2 needs Java 17 or newer with the module jdk.incubator.vector; a runtime without
        it fails late and unclearly, so both are checked before Spark starts.
How:    JAVA_HOME, then `java` on PATH, then /usr/lib/jvm; each home's own `release` file tells
        version and modules. Of the installed ones the oldest supported version wins: it is the
        one that Spark is tested with most.
Owns:   nothing; `install` changes the machine only when it is called."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError

JAVA_MAJOR_MIN = 17
NEEDED_MODULE = "jdk.incubator.vector"
DEBIAN_PACKAGE = "openjdk-17-jre-headless"
INSTALL_ROOT = Path("/usr/lib/jvm")
_INSTALL_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, which has `bin/java`, and its major version."""

    home: Path
    major: int

    @property
    def program(self) -> Path:
        """What starts it."""
        return self.home / "bin" / "java"


def inspect_home(home: Path) -> Java | None:
    """The runtime at `home`, or None when there is none that Spark can run on."""
    try:
        release = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    if version is None or int(version[1]) < JAVA_MAJOR_MIN:
        return None
    if modules is not None and NEEDED_MODULE not in modules[1].split():
        return None
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    return Java(home, int(version[1]))


def find_java(
    environment: Mapping[str, str] | None = None, *, install_root: Path = INSTALL_ROOT
) -> Java:
    """The runtime to use. Raises OperatorError, naming what to install, when there is none."""
    environment = os.environ if environment is None else environment
    told = environment.get("JAVA_HOME")
    if told:
        java = inspect_home(Path(told))
        if java is None:
            raise OperatorError(
                f"JAVA_HOME={told} has no Java {JAVA_MAJOR_MIN}+ with module {NEEDED_MODULE}: "
                "correct it, or unset it to search elsewhere"
            )
        return java
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path is not None:
        java = inspect_home(Path(on_path).resolve().parent.parent)
        if java is not None:
            return java
    installed = sorted(_inspect_all(install_root), key=lambda java: (java.major, java.home))
    if installed:
        return installed[0]
    raise OperatorError(
        f"no Java {JAVA_MAJOR_MIN} or newer found (JAVA_HOME, PATH, {install_root}): install"
        f" {DEBIAN_PACKAGE} or any JDK {JAVA_MAJOR_MIN}+, or set JAVA_HOME"
    )


def _inspect_all(install_root: Path) -> Iterable[Java]:
    for home in install_root.glob("*"):
        java = inspect_home(home)
        if java is not None:
            yield java


def find_or_install_java() -> Java:
    """Like `find_java`, and installs Debian's package first when there is none and apt-get may."""
    try:
        return find_java()
    except OperatorError:
        if os.environ.get("JAVA_HOME") or os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise
    install()
    return find_java()


def install() -> None:
    """Installs Debian's headless Java runtime with apt-get; needs root. Raises OperatorError."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    steps = (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", DEBIAN_PACKAGE],
    )
    for step in steps:
        done = subprocess.run(
            step,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise OperatorError(
                f"`{' '.join(step)}` failed ({reason}): install Java {JAVA_MAJOR_MIN}+ by hand"
            )
