"""ReadReplicaIsPrefix, of one view: what a copy serves is what the source had at some moment, and
never less than before.

Source: decision 0061."""

import asyncio
import random
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest
from tests.tiered.exports.states import PLACE, TOPIC_ID, state
from tests.tiered.exports.stores import MemoryStore

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.exporter import Exporter
from strandline.tiered.exports.heads import write_heads
from strandline.tiered.exports.names import ExportNumber
from strandline.tiered.exports.writing import write_topic
from strandline.tiered.objects.claim import claim_bucket
from strandline.tiered.objects.store import StoreError
from strandline.tiered.replicas.source import (
    LISTING_INTERVAL_MS,
    OVERDUE_INTERVAL_MS,
    ReplicaSource,
)
from strandline.tiered.replicas.view import ReplicaView, ViewState

T = TypeVar("T")
KEY = (TOPIC_ID, 0)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


class HandClock:
    """Only `monotonic_ms` is asked of it."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def monotonic_ms(self) -> int:
        return self.now_ms


class World:
    """A source's bucket, and a view of one partition in it."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), HandClock()
        run(claim_bucket(self.store, bucket="b", cluster_id="cluster"))
        run(write_topic(self.store, "cluster", "orders", TOPIC_ID, 0))
        attempts = count()
        self.exporter = Exporter(
            self.store,
            PLACE,
            draw_attempt=lambda: f"a{next(attempts)}",
            report=lambda _: None,
            grace_ms=0,
        )
        self.source = ReplicaSource(
            lambda: self.store,
            bucket="file:///b",
            cluster_id="cluster",
            clock=self.clock,  # type: ignore[arg-type]
        )
        self.changes = 0
        self.view = self.source.open(KEY, self._on_change, topic="orders")

    def _on_change(self) -> None:
        self.changes += 1

    def export(self, one: Export, *, heads_ms: int | None = None) -> None:
        run(self.exporter.write(one))
        if heads_ms is not None:
            self.heads(one.number, heads_ms)

    def heads(self, number: ExportNumber, at_ms: int) -> None:
        run(write_heads(self.store, "cluster", BrokerId(1), at_ms, {KEY: number}))

    def refresh(self, after_ms: int = 10) -> ReplicaView:
        self.clock.now_ms += after_ms
        self.store.calls.clear()
        run(self.source.refresh())
        return self.view

    def listed(self) -> bool:
        return ("list", PLACE.exports_prefix) in self.store.calls


def test_a_view_is_empty_until_an_export_is_read() -> None:
    world = World()
    view = world.refresh()
    assert (view.state, view.is_ready) == (ViewState.LOADING, False)
    world.export(state(2, 5, number=(3, 10), at_ms=70))
    view = world.refresh(OVERDUE_INTERVAL_MS)
    assert (view.state, view.start_offset, view.high_watermark) == (ViewState.READY, 20, 50)
    assert [one.base_offset for one in view.live("file:///b")] == [20, 30, 40]
    assert view.live("elsewhere") == ()
    assert view.staleness_ms(100) == 30
    assert world.changes == 1


def test_a_hint_leads_to_the_next_export_without_a_listing() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10)), heads_ms=1)
    assert world.refresh().high_watermark == 10
    world.export(state(0, 2, number=(3, 20)), heads_ms=90)
    assert world.refresh().high_watermark == 20
    assert not world.listed()
    assert world.view.staleness_ms(100) == 10


def test_an_idle_partition_is_confirmed_by_the_heads() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10), at_ms=5), heads_ms=5)
    world.refresh()
    for at_ms in (1_000, 2_000):
        world.heads(ExportNumber(Epoch(3), Index(10)), at_ms)
        assert world.refresh().staleness_ms(2_500) == 2_500 - at_ms
        assert not world.listed()


def test_a_late_hint_takes_nothing_back() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10)))
    world.export(state(0, 4, number=(4, 40)), heads_ms=5)
    assert world.refresh().high_watermark == 40
    world.heads(ExportNumber(Epoch(3), Index(10)), 900)
    view = world.refresh()
    assert view.high_watermark == 40
    assert view.as_of_ms == 5, "an older export that is confirmed says nothing of this one"


def test_the_listing_finds_what_no_hint_names() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10), at_ms=5))
    world.refresh()
    world.export(state(0, 2, number=(4, 20), at_ms=6))
    assert world.refresh().high_watermark == 10
    assert not world.listed(), "the source writes no heads: it may be gone for long"
    assert world.refresh(LISTING_INTERVAL_MS).high_watermark == 20
    world.export(state(0, 3, number=(4, 30), at_ms=7))
    run(write_heads(world.store, "cluster", BrokerId(2), 50, {}))
    assert world.refresh(OVERDUE_INTERVAL_MS).high_watermark == 30


def test_a_bucket_that_fails_leaves_the_view_as_it_is() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10)), heads_ms=5)
    world.refresh()

    def fail(operation: str, name: str) -> None:
        raise StoreError("503")

    world.store.fail = fail
    view = world.refresh()
    assert (view.state, view.high_watermark, view.failure) == (ViewState.READY, 10, "503")
    assert view.tried_ms > view.checked_ms
    assert world.source.failure == "503"
    world.store.fail = lambda operation, name: None
    assert world.refresh().failure == ""
    assert world.source.failure == ""


def test_a_source_that_is_deleted_is_told_from_a_bucket_that_is_empty() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10)), heads_ms=5)
    world.refresh()
    kept = dict(world.store.objects)
    world.store.objects.clear()  # As a directory that is not mounted.
    view = world.refresh(LISTING_INTERVAL_MS)
    assert view.state is ViewState.READY
    assert "claim.json" in view.failure
    world.store.objects = {"claim.json": kept["claim.json"]}
    assert world.refresh(LISTING_INTERVAL_MS).state is ViewState.DELETED
    world.store.objects = kept
    assert world.refresh(LISTING_INTERVAL_MS).state is ViewState.READY


def test_a_source_that_was_made_anew_is_not_followed_and_the_copy_says_so() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10)), heads_ms=5)
    assert world.refresh().is_ready
    for name in [one for one in world.store.objects if one != "claim.json"]:
        del world.store.objects[name]
    assert world.refresh(LISTING_INTERVAL_MS).failure == ""
    assert world.view.state is ViewState.DELETED
    run(write_topic(world.store, "cluster", "orders2", UUID(int=8), 0))
    assert world.refresh().failure == ""
    run(write_topic(world.store, "cluster", "orders", UUID(int=9), 0))
    view = world.refresh()
    assert view.state is ViewState.DELETED
    assert "delete this topic and create it again" in view.failure


def test_a_bucket_that_was_emptied_and_fills_again_is_followed_once_it_is_where_readers_are() -> (
    None
):
    world = World()
    world.export(state(0, 9, number=(3, 90)), heads_ms=5)
    world.refresh()
    emptied = msgspec.structs.replace(state(0, 9, number=(3, 91)), live=())
    world.export(emptied, heads_ms=6)
    view = world.refresh()
    assert (view.start_offset, view.high_watermark) == (90, 90)
    for last in (3, 8):
        world.export(state(0, last, number=(3, 100 + last)), heads_ms=10 + last)
        view = world.refresh()
        assert (view.state, view.start_offset, view.high_watermark) == (ViewState.READY, 90, 90)
    assert world.source.damaged_exports == 0, "that is no damage"
    world.export(state(0, 9, number=(3, 110)), heads_ms=30)
    view = world.refresh()
    assert (view.start_offset, view.high_watermark) == (0, 90)


def test_a_bucket_that_another_cluster_has_is_no_source() -> None:
    world = World()
    world.export(state(0, 1, number=(3, 10)), heads_ms=5)
    world.refresh()
    world.store.objects.clear()
    run(claim_bucket(world.store, bucket="b", cluster_id="other"))
    view = world.refresh(LISTING_INTERVAL_MS)
    assert (view.state, view.high_watermark) == (ViewState.READY, 10)
    assert view.failure == "it is of cluster other now, not of cluster"


def test_after_a_declared_loss_the_end_goes_back_and_the_epoch_is_higher() -> None:
    world = World()
    world.export(state(0, 9, number=(3, 90)), heads_ms=5)
    world.refresh()
    later = 1 << 20
    world.export(state(0, 6, number=(later, 61)), heads_ms=6)
    assert world.refresh().high_watermark == 60


def test_an_export_that_contradicts_its_own_past_is_not_served() -> None:
    world = World()
    world.export(state(0, 9, number=(3, 90)), heads_ms=5)
    world.refresh()
    world.export(state(0, 6, number=(4, 91)), heads_ms=6)
    assert world.refresh().high_watermark == 90
    assert world.source.damaged_exports == 1


def test_epochs_of_a_copy_are_those_of_the_source() -> None:
    world = World()
    made = state(1, 4, number=(5, 40))
    epochs = ((2, 10), (4, 20), (4, 30))
    live = tuple(
        msgspec.structs.replace(one, epochs=((Epoch(epoch), Offset(at)),))
        for one, (epoch, at) in zip(made.live, epochs, strict=True)
    )
    world.export(msgspec.structs.replace(made, live=live), heads_ms=5)
    view = world.refresh()
    assert [view.epoch_at(Offset(at)) for at in (9, 10, 19, 20, 35, 40)] == [-1, 2, 2, 4, 4, 4]
    assert view.epoch_end_offset(Epoch(1)) == (1, 10)
    assert view.epoch_end_offset(Epoch(2)) == (2, 20)
    assert view.epoch_end_offset(Epoch(3)) == (2, 20)
    assert view.epoch_end_offset(Epoch(4)) == (4, 40)
    assert view.epoch_end_offset(Epoch(5)) == (-1, -1)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_fails_a_view_never_goes_back(seed: int) -> None:
    """ReadReplicaIsPrefix over random exports, hints, failures and damage."""
    rng = random.Random(seed)
    world = World()
    last, first, index = 0, 0, 1
    truths = {(0, 0)}
    before: tuple[int, int] = (0, 0)
    for _ in range(60):
        match rng.randrange(5):
            case 0 | 1:
                last += rng.randrange(4)
                first = rng.randint(first, last)
                index += 1
                made = state(first, last, number=(1 + index // 20, index), at_ms=index)
                truths.add((made.start_offset, made.end_offset))
                world.export(made, heads_ms=index if rng.random() < 0.7 else None)
            case 2:
                number = world.exporter.newest.number if world.exporter.newest else None
                if number is not None:
                    stale = ExportNumber(number.epoch, Index(rng.randint(0, number.index)))
                    world.heads(stale, index)
            case 3:
                names = [one for one in world.store.objects if one.startswith(PLACE.exports_prefix)]
                if names and rng.random() < 0.3:
                    name = rng.choice(sorted(names))
                    world.store.objects[name] = (b"damaged", 0)
            case _:
                is_down = rng.random() < 0.3

                def fail(operation: str, name: str, *, is_down: bool = is_down) -> None:
                    if is_down:
                        raise StoreError("down")

                world.store.fail = fail
                view = world.refresh(rng.choice([10, OVERDUE_INTERVAL_MS, LISTING_INTERVAL_MS]))
                world.store.fail = lambda operation, name: None
                found = (int(view.start_offset), int(view.high_watermark))
                assert found in truths, "a state that the source never had"
                assert found >= before and found[1] >= before[1]
                before = found
