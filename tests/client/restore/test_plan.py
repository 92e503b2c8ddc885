"""A plan says what buckets have of a lost cluster at one time, and exactly what is missing.

Source: decision 0063."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.client.restore.lost_cluster import (
    CLUSTER,
    CONFIGS,
    RULE,
    claim,
    lost_bucket,
    put_export,
    put_offsets,
    put_snapshot,
)
from tests.tiered.exports.stores import MemoryStore

from strandline.base.errors import OperatorError
from strandline.cli.commands.restore import parse_time
from strandline.cli.main import main
from strandline.client.restore.plan import RestorePlan, plan_restore
from strandline.config.bucket_urls import parse_url
from strandline.tiered.objects.opening import open_store

URL = "s3://bucket/prefix"


def planned(
    *stores: MemoryStore, as_of_ms: int | None = None, topics: tuple[str, ...] = ()
) -> RestorePlan:
    named = {f"{URL}-{number}": store for number, store in enumerate(stores)}
    return asyncio.run(plan_restore(named, as_of_ms=as_of_ms, topics=topics))


def rows(plan: RestorePlan) -> list[tuple[str, int, int, int, str]]:
    return [
        (topic.name, one.index, one.start, one.end, one.missing)
        for topic in plan.topics
        for one in topic.partitions
    ]


def offsets(plan: RestorePlan) -> list[tuple[str, int, int]]:
    return [(one.group, one.committed, one.restored) for one in plan.offsets]


def test_the_newest_of_everything_and_what_is_missing() -> None:
    plan = planned(asyncio.run(lost_bucket()))
    assert plan.cluster_id == CLUSTER
    assert plan.cluster_configs == {"num.partitions": "7"}
    assert {one.name: one.configs for one in plan.topics} == CONFIGS
    assert rows(plan) == [
        ("orders", 0, 10, 40, "5 before 10, 3 from 40 on, at least"),
        ("orders", 1, 0, 10, "none known"),
        ("small", 0, 0, 0, "all: no bucket has anything of it"),
    ]
    assert offsets(plan) == [("a", 42, 40), ("b", 10, 10), ("c", 3, 0)]
    assert plan.notes == ()


def test_rules_come_back_and_users_are_named_without_anything_of_their_passwords() -> None:
    plan = planned(asyncio.run(lost_bucket()))
    assert plan.rules == (RULE,)
    assert plan.quotas == {(("user", "alice"),): {"producer_byte_rate": 5.0}}
    assert plan.users == ("alice",)


def test_a_time_chooses_all_of_it_at_one_cut() -> None:
    plan = planned(asyncio.run(lost_bucket()), as_of_ms=199)
    assert plan.taken.written_ms == 100
    assert rows(plan)[0] == ("orders", 0, 0, 20, "5 from 20 on, at least")
    assert offsets(plan) == [("a", 19, 19), ("b", 10, 10)]


def test_before_the_first_snapshot_there_is_nothing() -> None:
    with pytest.raises(
        OperatorError, match="as old as that: the oldest is of 1970-01-01T00:00:01Z"
    ):
        planned(asyncio.run(lost_bucket()), as_of_ms=99)


def test_of_several_buckets_the_one_that_ends_the_latest_gives_a_partition() -> None:
    async def other() -> MemoryStore:
        store = MemoryStore()
        await claim(store)
        await put_export(store, 0, 50, at_ms=150)
        await put_export(store, 0, 10, at_ms=150, topic="small")
        await put_offsets(store, at_ms=300, offset=3, a=("orders", 0, 45))
        return store

    plan = planned(asyncio.run(lost_bucket()), asyncio.run(other()))
    assert [row[:4] for row in rows(plan)] == [
        ("orders", 0, 0, 50),
        ("orders", 1, 0, 10),
        ("small", 0, 0, 10),
    ]
    assert plan.topics[0].partitions[0].bucket == f"{URL}-1"
    assert offsets(plan) == [("a", 45, 45)]


def test_patterns_choose_topics() -> None:
    store = asyncio.run(lost_bucket())
    plan = planned(store, topics=("sm*",))
    assert [one.name for one in plan.topics] == ["small"]
    assert offsets(plan) == [("c", 3, 0)]
    with pytest.raises(OperatorError, match="matches x"):
        planned(store, topics=("x",))


def test_damaged_objects_are_passed_over_and_named() -> None:
    async def damaged() -> MemoryStore:
        store = await lost_bucket()
        for name in list(store.objects):
            if "0000000000200" in name or name.endswith("-000000000000200"):
                data, at_ms = store.objects[name]
                store.objects[name] = data[:-1] + bytes([data[-1] ^ 1]), at_ms
        return store

    plan = planned(asyncio.run(damaged()))
    assert plan.taken.written_ms == 100
    assert rows(plan)[0][:4] == ("orders", 0, 0, 20)
    assert offsets(plan) == [("a", 19, 19), ("b", 10, 10)]
    assert len(plan.notes) == 3
    assert all("older one is used" in one for one in plan.notes)


def test_a_prefix_that_no_cluster_has_claimed_is_refused() -> None:
    with pytest.raises(OperatorError, match="no cluster has claimed"):
        planned(MemoryStore())


def test_buckets_of_two_clusters_are_refused() -> None:
    other = MemoryStore()
    asyncio.run(claim(other, "another"))
    with pytest.raises(OperatorError, match="several clusters"):
        planned(asyncio.run(lost_bucket()), other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1764453600000", 1_764_453_600_000),
        ("2025-11-29T22:00:00Z", 1_764_453_600_000),
        ("2025-11-29T23:00:00+01:00", 1_764_453_600_000),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "2025-11-29T22:00:00"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(OperatorError, match="--as-of"):
        parse_time(text)


def test_the_command_lists_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"file://{tmp_path}/bucket"

    async def fill() -> None:
        store = open_store(parse_url(url))
        for name, (data, _) in (await lost_bucket()).objects.items():
            await store.put(name, [data])

    asyncio.run(fill())
    with pytest.raises(SystemExit) as ended:
        main(["restore", "--from", url, "--dry-run"])
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert "orders-0" in shown and "5 before 10, 3 from 40 on, at least" in shown
    assert "group a: orders-0 goes back from 42 to 40, where its log ends" in shown
    with pytest.raises(SystemExit):
        main(["restore", "--from", url, "--as-of", "150", "--json", "--dry-run"])
    told = json.loads(capsys.readouterr().out)
    assert told["controller_ms"] == 100
    assert told["topics"][0]["partitions"][0]["end_offset"] == 20
    with pytest.raises(SystemExit) as ended:
        main(["restore", "--from", f"file://{tmp_path}/other", "--dry-run"])
    assert ended.value.code
    assert "is its file system mounted" in capsys.readouterr().err


def test_the_command_does_not_begin_without_all_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"file://{tmp_path}/bucket"

    async def fill() -> None:
        store = open_store(parse_url(url))
        objects = (await lost_bucket()).objects
        gone = min(one for one in objects if one.endswith(".segment"))
        for name, (data, _) in objects.items():
            if name != gone:
                await store.put(name, [data])

    asyncio.run(fill())
    with pytest.raises(SystemExit) as ended:
        options = ("--records", "--as-of", "150", "--bootstrap", "localhost:1")
        main(["restore", "--from", url, *options])
    assert ended.value.code
    told = capsys.readouterr()
    assert "deleted or lost objects: 0 to 10" in told.out
    assert "lack objects of 1 partition, see MISSING: orders-0" in told.err
    assert "--partial" in told.err


def test_an_older_snapshot_serves_while_a_bucket_lags() -> None:
    async def lagging() -> tuple[MemoryStore, MemoryStore]:
        old, new = await lost_bucket(), MemoryStore()
        await claim(new)
        await put_snapshot(new, at_ms=300, offset=11)
        return old, new

    assert planned(*asyncio.run(lagging())).taken.written_ms == 300
