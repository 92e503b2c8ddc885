"""Which partitions upkeep compacts, and that their values stay values in SQL."""

from strandline.pipeline.upkeep.compaction import (
    PREDICATE_PARTITIONS_MAX,
    SmallFiles,
    predicates,
    worth_compacting,
)


def test_only_partitions_with_enough_small_files_are_compacted_the_fullest_first() -> None:
    found = [SmallFiles(("a",), 7, 1), SmallFiles(("b",), 8, 1), SmallFiles(("c",), 20, 1)]
    chosen = worth_compacting(found, small_files=8)
    assert [each.partition for each in chosen] == [("c",), ("b",)]


def test_partition_values_are_quoted_and_null_is_a_value() -> None:
    chosen = [SmallFiles(("2026-01-02", "it's \\ red"), 9, 1), SmallFiles((None, "x"), 9, 1)]
    assert list(predicates(chosen, {"date": "date", "odd`name": "string"})) == [
        "(`date` = CAST('2026-01-02' AS date) AND `odd``name` = CAST('it\\'s \\\\ red' AS string))"
        " OR (`date` IS NULL AND `odd``name` = CAST('x' AS string))"
    ]


def test_a_table_without_partitions_is_compacted_whole() -> None:
    assert list(predicates([SmallFiles((), 9, 1)], {})) == [""]
    assert list(predicates([], {})) == []


def test_many_partitions_take_several_statements() -> None:
    chosen = [SmallFiles((str(n),), 9, 1) for n in range(PREDICATE_PARTITIONS_MAX + 1)]
    told = list(predicates(chosen, {"n": "int"}))
    assert [each.count("CAST") for each in told] == [PREDICATE_PARTITIONS_MAX, 1]
