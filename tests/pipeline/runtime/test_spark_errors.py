"""Spark's errors become one line that says what to do."""

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.runtime.spark_errors import check_master, summarize


def test_stream_failure_is_told_by_its_cause() -> None:
    message = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [BAD_THING]"
        " The thing is bad. SQLSTATE: XX000\n\tat org.apache.Some.code\nJVM stacktrace:\nmore"
    )
    assert summarize(message) == "[BAD_THING] The thing is bad"


def test_java_failure_is_told_without_its_stack() -> None:
    message = (
        "An error occurred while calling o1.load.\n"
        ": java.lang.IllegalArgumentException: no\n\tat org.apache.Some.code"
    )
    assert summarize(message) == "java.lang.IllegalArgumentException: no"
    assert summarize("") == "no reason given"


def test_common_failures_are_told_in_plain_words() -> None:
    kafka = "x UnknownTopicOrPartitionException: This server does not host this topic-partition"
    assert summarize(kafka) == "the topic does not exist"
    lost = "Some data may have been lost because they are not available in Kafka any more;"
    assert "no longer holds records" in summarize(lost)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Job aborted\nCaused by: java.io.IOException: No space left on device", "disk is full"),
        ("io.delta.exceptions.ConcurrentTransactionException: [DELTA_CONCURRENT_TRANSACTION] x",
         "another program changed the table at the same moment: run one job at a time"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory=4g"),
        ("Answer from Java side is empty", "Spark's Java process ended"),
        ("[Errno 111] Connection refused", "Spark's Java process ended"),
        ("o.a.h.fs.UnsupportedFileSystemException: No FileSystem for scheme \"s3a\"",
         "Spark cannot reach s3a: locations"),
        ("[DELTA_CANNOT_CREATE_LOG_PATH] Cannot create file:/proc/x/_delta_log\n\tat y",
         "cannot write file:/proc/x/_delta_log: choose another location"),
        ("All masters are unresponsive! Giving up.", "no Spark master answers"),
        ("Traceback:\n  File x\nstrandline.spark.reading.data_loss.DataLossError: a-0: offset 3 is "
         "gone\n\n\tat org.apache", "a-0: offset 3 is gone"),
    ],
)  # fmt: skip
def test_failures_that_an_operator_can_mend_say_how(message: str, told: str) -> None:
    line = summarize(message)
    assert told in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[2,3]", "spark://a:7077", "spark://a:1,b:2", "yarn",
     "k8s://https://host:6443"],
)  # fmt: skip
def test_masters_of_every_kind_are_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["", "local[x]", "local[0]", "spark://a", "host:7077"])
def test_a_master_that_no_spark_knows_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(OperatorError, match=r"--master .*expected local"):
        check_master(master)
