"""A user's job for spark-submit, which names the source and nothing else of this package: SQL and
data frames over a topic, a stream of it into files, and rows back into another topic.

Arguments: BOOTSTRAP TOPIC OTHER_TOPIC DIRECTORY. Prints one line of JSON."""

import json
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

COUNT = "SELECT count(*), count(DISTINCT partition, offset), min(leaderEpoch) FROM records"


def main(bootstrap: str, topic: str, other: str, directory: Path) -> None:
    """Everything that the page of the source shows, once."""
    spark = SparkSession.builder.getOrCreate()
    options = f"kafka.bootstrap.servers '{bootstrap}', subscribe '{topic}'"
    spark.sql(
        "CREATE TEMPORARY VIEW records USING strandline "
        f"OPTIONS ({options}, includeLeaderEpoch 'true')"
    )
    (told,) = spark.sql(COUNT).collect()
    spark.sql(f"CREATE TABLE kept USING parquet LOCATION '{directory}/kept' AS TABLE records")
    frame = read(spark, bootstrap, topic)
    written = frame.select("key", "value").write.format("strandline").mode("append")
    written.option("kafka.bootstrap.servers", bootstrap).option("topic", other).save()
    stream = spark.readStream.format("strandline").option("kafka.bootstrap.servers", bootstrap)
    query = (
        stream.option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.format("parquet")
        .option("path", str(directory / "streamed"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = {
        "view": list(told),
        "kept": spark.table("kept").count(),
        "written": read(spark, bootstrap, other).count(),
        "streamed": spark.read.parquet(str(directory / "streamed")).count(),
        "refused": refusal(spark, f"CREATE TABLE bad USING strandline OPTIONS ({options})"),
    }
    print(json.dumps(found))  # noqa: T201 (the test reads it)


def read(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """A topic as it is now."""
    asked = spark.read.format("strandline").option("kafka.bootstrap.servers", bootstrap)
    return asked.option("subscribe", topic).load()


def refusal(spark: SparkSession, statement: str) -> str:
    """What Spark says to a statement that it refuses; empty if it takes it."""
    try:
        spark.sql(statement)
        spark.table("bad").count()
    except PySparkException as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:4], directory=Path(sys.argv[4]))  # type: ignore[misc]
