"""The line that says what a run of `lake` read."""

from strandline.pipeline.commands.lake import describe_result
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
