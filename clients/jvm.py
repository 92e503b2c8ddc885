"""The Java client; Kafka Streams and Kafka Connect share its folder of jars."""

from collections.abc import Sequence

from clients.cells import program_cells
from clients.client import Client
from clients.toolbox import built

VERSION = "4.3.1"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
STEPS = (
    ("mvn", "-q", "-B", COPY, "-DincludeScope=runtime", "-DoutputDirectory={out}/jars"),
    ("javac", "-cp", "{out}/jars/*", "-d", "{out}/classes", "JavaClient.java", "WordCount.java"),
)
NEEDS = {
    "javac": "apt-get install openjdk-17-jdk-headless",
    "mvn": "apt-get install maven",
}
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel="


def prepare() -> object:
    """Fetch the jars and compile the programs."""
    return built("jvm", STEPS)


def java(main: str, *arguments: str, level: str = "error") -> list[str]:
    """The command line of a class."""
    out = built("jvm", STEPS)
    path = f"{out}/classes:{out}/jars/*"
    memory = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return ["java", *memory, f"{QUIET}{level}", "-cp", path, main, *arguments]


def _argv() -> Sequence[str]:
    return java("JavaClient")


JAVA = Client(
    name="Java (kafka-clients)",
    version=VERSION,
    tried="every codec, idempotent, assignment, a group of two, topics and configuration",
    cells=program_cells(_argv),
    needs=NEEDS,
    prepare=prepare,
    downloads=True,
)
