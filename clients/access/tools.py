"""Kafka's own command line tools with `--command-config`: what people have typed for years.

How:    `bench/kafka/get-kafka` fetches Kafka's jars at first use; each tool is a process of Java.
Source: https://kafka.apache.org/43/ (operations, security)."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.clusters import KAFKA_SCRIPTS

from clients.access.login import Login
from clients.records import CellError
from clients.toolbox import BUILD, alone

TIMEOUT_S = 180
FETCH_S = 900
CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}


def kafka_home() -> Path:
    """Where Kafka's jars are. Raises subprocess.CalledProcessError if they can't be fetched."""
    with alone(BUILD / "kafka"):
        done = subprocess.run(
            [KAFKA_SCRIPTS / "get-kafka", BUILD / "kafka"],
            check=True,
            capture_output=True,
            text=True,
            timeout=FETCH_S,
        )
    return Path(done.stdout.splitlines()[-1])


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools, as one user."""

    home: Path
    login: Login
    directory: Path

    def but(self, **told: str) -> "Tools":
        """The same with another login."""
        return Tools(self.home, self.login.but(**told), self.directory)

    def run(self, tool: str, *words: str, typed: str = "") -> str:
        """What a tool prints. Raises CellError with its last words if it fails."""
        done = self.attempt(tool, *words, typed=typed)
        if done.returncode != 0:
            raise CellError(f"{tool} {' '.join(words)}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return done.stdout

    def attempt(
        self, tool: str, *words: str, typed: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run a tool, whatever it answers."""
        config = self.directory / f"{self.login.told.get('user', 'certificate')}.properties"
        told = self.login.java()
        config.write_text("".join(f"{key}={value}\n" for key, value in told.items()))
        shared: Sequence[str] = ("--bootstrap-server", self.login.bootstrap)
        return subprocess.run(
            [
                *(self.home / "bin" / "kafka-run-class", CLASSES[tool]),
                *shared,
                *("--command-config", config),
                *words,
            ],
            input=typed,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env={**os.environ, "KAFKA_JVM": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )
