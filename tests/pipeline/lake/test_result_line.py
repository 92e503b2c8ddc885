"""The line that says what a run of `lake` read."""

from strandline.pipeline.commands.lake import describe_batch, describe_result
from strandline.pipeline.lake.job import Written
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.run import LakeResult


def result(*, upsert: bool = False, **counts: int) -> LakeResult:
    options = LakeOptions(
        bootstrap="broker:9092", topics=("orders", "refunds"), table="/lake", upsert=upsert
    )
    return LakeResult(options, **counts)


def test_counts_come_after_topics_and_batches() -> None:
    said = describe_result(result(batches=1, records=1_005, malformed=5, gaps=1))
    assert said == "read 1,005 records of orders, refunds in 1 batch, 5 of them malformed, 1 gap"
    said = describe_result(result(batches=2, records=7, dead_letters=2, gaps=2))
    assert said == "read 7 records of orders, refunds in 2 batches, 2 dead letters, 2 gaps"


def test_older_records_of_a_key_are_not_called_offsets_without_a_record() -> None:
    assert "40 offsets without a record" in describe_result(result(elsewhere=40))
    assert "40 offsets without a row" in describe_result(result(elsewhere=40, upsert=True))


def test_a_batch_names_its_topics_if_the_job_fills_several_tables() -> None:
    told = Written(
        number=4,
        version=4,
        records=10,
        malformed=0,
        dead_letters=0,
        problems={},
        elsewhere=0,
        gaps=1,
        left=0,
        lag_ms=0,
    )
    read = result(records=10, total=10)
    assert describe_batch(read, told).startswith("batch 4: 10 records, 1 gap, 10 of 10, ")
    several = describe_batch(read, told, tables=2)
    assert several.startswith("orders, refunds, batch 4: 10 records")
