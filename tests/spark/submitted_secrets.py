"""A user's job for spark-submit on a secured cluster: it reads a topic by a client's configuration
file and by options, and keeps what Spark shows of it.

Arguments: CONFIG BOOTSTRAP TOPIC DIRECTORY LOGIN TRUST. Prints the numbers of records."""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

PAGES = (
    "/environment/",
    "/SQL/",
    *(f"/SQL/execution/?id={number}" for number in range(4)),
    "/jobs/",
    "/stages/",
    "/executors/",
)
API = ("environment", "sql?details=true&planDescription=true", "jobs", "stages?details=true")


def main(config: str, bootstrap: str, topic: str, directory: Path, *words: str) -> None:
    """Both ways to read, and everything that Spark shows into files."""
    spark = SparkSession.builder.getOrCreate()
    login, trust = words
    by_options = {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": Path(login).read_text(),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": trust,
    }
    counts = []
    for at, options in enumerate(({"clientConfig": config}, by_options)):
        asked = spark.read.format("strandline").options(**options, subscribe=topic)
        frame = asked.load()
        counts.append(frame.count())
        (directory / f"plan-{at}").write_text(plan_of(frame))
    context = spark.sparkContext
    url = str(context.uiWebUrl)
    api = f"/api/v1/applications/{context.applicationId}"
    for at, page in enumerate((*PAGES, *(f"{api}/{one}" for one in API))):
        try:
            with urllib.request.urlopen(url + page) as answer:
                (directory / f"page-{at}").write_bytes(answer.read())
        except urllib.error.HTTPError as error:
            (directory / f"page-{at}").write_bytes(error.read())
    print(json.dumps(counts))  # noqa: T201 (the test reads it)


def plan_of(frame: DataFrame) -> str:
    """What `explain` prints, of every kind."""
    query = frame._jdf.queryExecution()
    return "\n".join(
        str(text) for text in (query.toString(), query.explainString(plan_mode(frame)))
    )


def plan_mode(frame: DataFrame) -> object:
    """The mode that shows most."""
    java = frame.sparkSession._jvm
    assert java is not None
    return java.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]), *sys.argv[5:7])
