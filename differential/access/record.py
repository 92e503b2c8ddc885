"""`python -m differential.access.record`: records what Apache Kafka answers.

How:    starts Kafka (`java` and `mvn` are needed), asks, and writes `recorded/`. Look at the
        differences before you commit them: `tests/differential` compares with Strandline."""

import argparse
import sys
import tempfile
from pathlib import Path

from bench import clusters

from differential.access.kafka import KafkaTarget, secure_kafka
from differential.access.scripts import SCRIPT_NAMES, play_script
from differential.access.subjects import ADMIN, USERS
from differential.access.tables import read_table, write_script, write_table
from differential.access.walk import TABLES, prepare, requests_for, rules_for, walk
from strandline.broker.handler_table import HANDLERS
from strandline.protocol.apis import APIS
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


def main() -> int:
    """Exit code 0 if everything was recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*TABLES, *SCRIPT_NAMES], help="only these")
    parser.add_argument(
        "--new", action="store_true", help="of tables, only requests without answers"
    )
    arguments = parser.parse_args()
    names = arguments.tables
    if not clusters.has_kafka():
        sys.exit("Apache Kafka needs `java` and `mvn` on the path")
    kafka = kafka_version()
    for name in names:
        with (
            tempfile.TemporaryDirectory(prefix="access-") as directory,
            secure_kafka(
                Path(directory),
                USERS,
                open_without_rules=name == "open",
                creates_topics=name == "creating",
            ) as target,
        ):
            if name in SCRIPT_NAMES:
                write_script(name, kafka, play_script(name, target))
            else:
                record_table(target, name, kafka, only_new=arguments.new)
    return 0


def record_table(target: KafkaTarget, name: str, kafka: str, *, only_new: bool) -> None:
    """Record the requests of a table, all or those that it has no answers to."""
    versions = common_versions(target)
    prepare(target, rules_for(name))
    known = read_table(name)[1] if only_new else {}
    requests = requests_for(name)
    missing = [one for one in requests if one.title not in known]
    found = {**known, **walk(target, TABLES[name], missing, versions)}
    write_table(name, kafka, versions, {one.title: found[one.title] for one in requests})


def common_versions(target: KafkaTarget) -> dict[int, tuple[int, int]]:
    """{API key: the lowest and the highest version that both brokers have}"""
    answer = target.ask(ADMIN, ApiVersionsRequest("oracle", "1"), 4)
    assert isinstance(answer, ApiVersionsResponse)
    common = {}
    for one in answer.api_keys:
        if one.api_key in HANDLERS:
            api, handler = APIS[one.api_key], HANDLERS[one.api_key]
            last = api.max_version if handler.max_version is None else handler.max_version
            common[one.api_key] = (
                max(one.min_version, api.min_version),
                min(one.max_version, last),
            )
    return common


def kafka_version() -> str:
    """The version that `bench/kafka` starts."""
    text = (clusters.KAFKA_SCRIPTS / "lib" / "pom.xml").read_text()
    return text.partition("<kafka.version>")[2].partition("<")[0]


if __name__ == "__main__":
    sys.exit(main())
