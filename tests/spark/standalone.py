"""A Spark cluster of one master and one worker, from the PySpark package alone."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from tests.integration.conftest import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
START_TIMEOUT_S = 120


@contextmanager
def standalone_cluster(directory: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The master's URL, once the worker has registered with it."""
    with _daemon("master.Master", "--port", "0", directory=directory, environment=environment) as m:
        url = _wait_for(m, r"Starting Spark master at (spark://\S+)")
        arguments = ("worker.Worker", "--cores", "2", "--memory", "1g", url)
        with _daemon(*arguments, directory=directory, environment=environment) as worker:
            _wait_for(worker, r"(Successfully registered) with master")
            yield url


def spark_submit(
    url: str, *arguments: str, jars: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The pipeline's main file, submitted to the cluster with these arguments."""
    import strandline.pipeline

    main = Path(strandline.pipeline.__file__).with_name("__main__.py")
    settings = ("--master", url, "--jars", jars, "--conf", "spark.executor.memory=512m")
    return spark_command("spark-submit", *settings, str(main), *arguments, environment=environment)


def spark_command(
    name: str, *arguments: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A program of PySpark's own `bin`, such as spark-submit."""
    program = str(SPARK_HOME / "bin" / name)
    return subprocess.run(
        [program, "--conf", "spark.ui.enabled=false", *arguments],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S * 2,
        check=False,
    )


@contextmanager
def _daemon(
    name: str, *arguments: str, directory: Path, environment: Mapping[str, str]
) -> Iterator[Path]:
    """Runs a Spark daemon; yields its log."""
    log = directory / f"{name}.log"
    where = ("--work-dir", str(directory / "work")) if name.startswith("worker") else ()
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                *(str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"),
                *("--host", "127.0.0.1", "--webui-port", "0", *where, *arguments),
            ],
            env={**environment, "SPARK_HOME": str(SPARK_HOME)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(log: Path, pattern: str) -> str:
    def found() -> re.Match[str] | None:
        return re.search(pattern, log.read_text(errors="replace"))

    wait_until(lambda: found() is not None, what=pattern, timeout_s=START_TIMEOUT_S)
    match = found()
    assert match is not None
    return match[1]
