"""The Java client; Kafka Streams and Kafka Connect share its folder of jars.

How:    its consumer reads in fetch sessions (KIP-227). What a session saves shows only in requests
        and answers, which the client logs: `judge_sessions` reads that log."""

import re
from collections import Counter
from collections.abc import Sequence

from clients.cells import program_cells
from clients.client import Access, Client, Place
from clients.program import Program
from clients.records import CellError
from clients.toolbox import built

VERSION = "4.3.1"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
SOURCES = (
    "JavaAccess.java",
    "JavaClient.java",
    "JavaGoverning.java",
    "Settings.java",
    "WordCount.java",
)
STEPS = (
    ("mvn", "-q", "-B", COPY, "-DincludeScope=runtime", "-DoutputDirectory={out}/jars"),
    ("javac", "-cp", "{out}/jars/*", "-d", "{out}/classes", *SOURCES),
)
NEEDS = {
    "javac": "apt-get install openjdk-17-jdk-headless",
    "mvn": "apt-get install maven",
}
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel="
LOGS_SESSIONS = (
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.FetchSessionHandler=debug",
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
)
SESSION_PARTITIONS = 60
_FULL = re.compile(r"Node (\d+) sent a full fetch response .* session (\d+) with [1-9]")
_INCREMENTAL = re.compile(
    r"Node (\d+) sent an incremental fetch response .* for session (\d+)"
    r"(?: with (\d+) response partition\(s\))?(?:, (\d+) implied)?"
)


def prepare() -> object:
    """Fetch the jars and compile the programs."""
    return built("jvm", STEPS)


def java(
    main: str, *arguments: str, level: str = "error", options: Sequence[str] = ()
) -> list[str]:
    """The command line of a class; `options` of the JVM."""
    out = built("jvm", STEPS)
    path = f"{out}/classes:{out}/jars/*"
    memory = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return ["java", *memory, f"{QUIET}{level}", *options, "-cp", path, main, *arguments]


def _argv() -> Sequence[str]:
    return java("JavaClient")


def _consume(place: Place) -> None:
    program_cells(_argv)["consume"](place)
    topic = f"{place.prefix}-sessions"
    argv = java("JavaClient", options=LOGS_SESSIONS)
    lines = Program(argv, environment=place.environment).run(
        "session", place.cluster.bootstrap, topic, str(SESSION_PARTITIONS)
    )
    judge_sessions(lines, SESSION_PARTITIONS)
    place.observer.delete(topic)


def judge_sessions(lines: Sequence[str], count: int) -> None:
    """Each broker answered one full fetch, which made a session, and then only incremental ones of
    that session. Most of them name only the partition with the new record. Raises CellError.

    `lines`: of the step `session`; `count`: its partitions, one record each."""
    records = sum(line.startswith("record\t") for line in lines)
    if records != count:
        raise CellError(f"sessions: {records} records for {count}")
    full = [(found[1], found[2]) for found in map(_FULL.search, lines) if found]
    answers = [found.groups() for found in map(_INCREMENTAL.search, lines) if found]
    sessions = dict(full)
    if len(sessions) != len(full) or not sessions:
        raise CellError(f"sessions: full fetches {full}, not one for each broker")
    if foreign := [one for one in answers if sessions.get(one[0]) != one[1]]:
        raise CellError(f"sessions: answers in other sessions than {sessions}: {foreign[:3]}")
    if any("INVALID_FETCH_SESSION" in line or "NOT_FOUND" in line for line in lines):
        raise CellError("sessions: a broker refused a request in one")
    named = Counter(int(told or 0) for _, _, told, _ in answers)
    implied = sum(int(told or 0) for *_, told in answers)
    if named[1] < count // 2 or sum(size * times for size, times in named.items()) > 2 * count:
        raise CellError(f"sessions: {dict(named)} (partitions: answers), most must name one")
    if implied < count:
        raise CellError(f"sessions: only {implied} partitions were left out of answers")


JAVA = Client(
    name="Java (kafka-clients)",
    version=VERSION,
    tried="every codec, idempotent, assignment, fetch sessions, a group of two, topics and"
    " configuration",
    cells={**program_cells(_argv), "consume": _consume},
    needs=NEEDS,
    prepare=prepare,
    downloads=True,
    access=Access(
        argv=_argv,
        refusals={
            "write": "TopicAuthorizationException",
            "read": "TopicAuthorizationException",
            "join": "GroupAuthorizationException",
            "create": "TopicAuthorizationException",
            "delete": "TopicAuthorizationException",
            "operate": "ClusterAuthorizationException",
            "wrong password": "SaslAuthenticationException",
            "wrong authority": "SslAuthenticationException",
            "wrong host": "SslAuthenticationException",
            "no certificate": "SslAuthenticationException",
            "wrong secret": "LoginException",
            "gone": "ResourceNotFoundException",
        },
        renews=True,
    ),
)
