"""What is exported is what is read, and what is damaged does not serve.

Source: decision 0061."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

import msgspec
import pytest
from tests.tiered.exports.states import PLACE, TOPIC_ID, entry, state
from tests.tiered.exports.stores import MemoryStore

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.exports.encoding import PageRef
from strandline.tiered.exports.export import Export, RetiredObject, fault_of
from strandline.tiered.exports.exporter import WRITES_PER_REMOVAL, Exporter
from strandline.tiered.exports.heads import Hint, hints_of, read_heads, write_heads
from strandline.tiered.exports.layout import PAGE_ENTRIES_MAX, PAGES_MAX, Page, lay_out
from strandline.tiered.exports.names import ExportNumber, parse_number
from strandline.tiered.exports.old import KEPT_MIN, remove_old
from strandline.tiered.exports.reading import (
    find_topic,
    list_numbers,
    read_export,
    read_hinted,
    read_newest,
)
from strandline.tiered.exports.writing import (
    HEAD_BYTES_MAX,
    RETIRED_MAX,
    ExportTooLargeError,
    write_export,
)
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.store import ObjectExistsError, StoreError

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def exporter(store: MemoryStore, reports: list[str] | None = None) -> Exporter:
    attempts = count()
    return Exporter(
        store,
        PLACE,
        draw_attempt=lambda: f"a{next(attempts)}",
        report=[].append if reports is None else reports.append,
        grace_ms=1_000,
    )


def newest(store: MemoryStore) -> Export:
    found = run(read_newest(store, PLACE))
    assert found is not None
    return found.export


def test_an_export_is_read_as_it_was_written() -> None:
    store = MemoryStore()
    written = state(2, 9, number=(4, 120), retired=(RetiredObject("old", 5),))
    run(write_export(store, written, (), "a"))
    assert run(read_export(store, PLACE, written.number)).export == written
    assert (written.start_offset, written.end_offset) == (20, 90)
    assert written.epochs == ((1, 20),)


def test_names_sort_as_numbers_do() -> None:
    numbers = [
        ExportNumber(Epoch(e), Index(i), r) for e in (9, 10) for i in (9, 10) for r in (0, 1)
    ]
    assert sorted(map(str, numbers)) == list(map(str, numbers)) == list(map(str, sorted(numbers)))
    assert [parse_number(str(one)) for one in numbers] == numbers
    assert parse_number("1-2-3") is None
    assert parse_number("manifest") is None


def test_the_highest_epoch_wins_though_its_index_is_lower() -> None:
    store = MemoryStore()
    run(write_export(store, state(0, 9, number=(3, 500)), (), "a"))
    after_loss = state(0, 5, number=(1 << 20, 300))
    run(write_export(store, after_loss, (), "b"))
    assert newest(store) == after_loss


@pytest.mark.parametrize("damage", ["head", "page", "no page"])
def test_the_next_lower_export_serves_in_place_of_a_damaged_one(damage: str) -> None:
    store, reports = MemoryStore(), list[str]()
    run(write_export(store, state(0, 3, number=(1, 10)), (), "a"))
    damaged = state(0, 2_500, number=(1, 3_000))
    run(write_export(store, damaged, (), "b"))
    name = PLACE.export_name(damaged.number)
    if damage != "head":
        name = max(one for one in store.objects if one.startswith(PLACE.pages_prefix))
    data, at_ms = store.objects[name]
    if damage == "no page":
        del store.objects[name]
    else:
        store.objects[name] = (data[:-1], at_ms)
    found = run(read_newest(store, PLACE, report=reports.append))
    assert found is not None
    assert found.export == state(0, 3, number=(1, 10))
    assert len(reports) == 1
    assert name in reports[0]


def test_every_damaged_byte_of_an_export_is_found() -> None:
    store = MemoryStore()
    written = state(0, 2, number=(1, 10))
    run(write_export(store, written, (), "a"))
    name = PLACE.export_name(written.number)
    data = store.objects[name][0]
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x40
        store.objects[name] = (bytes(changed), 0)
        with pytest.raises(DamagedObjectError, match=r"manifest/"):
            run(read_export(store, PLACE, written.number))


def test_an_export_under_the_name_of_another_is_found() -> None:
    store = MemoryStore()
    written = state(0, 2, number=(1, 10))
    run(write_export(store, written, (), "a"))
    other = ExportNumber(Epoch(2), Index(10))
    store.objects[PLACE.export_name(other)] = store.objects[PLACE.export_name(written.number)]
    with pytest.raises(DamagedObjectError, match="another export"):
        run(read_export(store, PLACE, other))
    assert newest(store) == written


def test_a_store_that_fails_is_no_empty_bucket() -> None:
    store = MemoryStore()
    run(write_export(store, state(0, 3, number=(1, 10)), (), "a"))

    def fail(operation: str, name: str) -> None:
        if operation == "get":
            raise StoreError("503")

    store.fail = fail
    with pytest.raises(StoreError):
        run(read_newest(store, PLACE))


def test_a_hint_saves_the_listing_and_one_that_fails_does_not_serve() -> None:
    store, reports = MemoryStore(), list[str]()
    written = state(0, 3, number=(1, 10))
    run(write_export(store, written, (), "a"))
    store.calls.clear()
    found = run(read_hinted(store, PLACE, written.number))
    assert found is not None
    assert found.export == written
    assert [operation for operation, _ in store.calls] == ["get"]
    assert run(read_hinted(store, PLACE, ExportNumber(Epoch(9), Index(9)))) is None
    store.objects[PLACE.export_name(written.number)] = (b"SLEX", 0)
    assert run(read_hinted(store, PLACE, written.number, report=reports.append)) is None
    assert len(reports) == 1


def test_heads_name_the_newest_exports_and_the_highest_of_several_hints_counts() -> None:
    store = MemoryStore()
    low, high = ExportNumber(Epoch(3), Index(30)), ExportNumber(Epoch(4), Index(20))
    key, other = (TOPIC_ID, 0), (TOPIC_ID, 1)
    run(write_heads(store, "cluster", BrokerId(1), 2_000, {key: low, other: low}))
    run(write_heads(store, "cluster", BrokerId(2), 1_000, {key: high}))
    hints = hints_of(run(read_heads(store, "cluster")))
    assert hints == {key: Hint(high, 1_000), other: Hint(low, 2_000)}
    run(write_heads(store, "cluster", BrokerId(2), 3_000, {key: high}))
    store.objects["cluster/heads/1"] = (b"half", 0)
    assert hints_of(run(read_heads(store, "cluster"))) == {key: Hint(high, 3_000)}


def test_a_topic_is_found_by_its_name_and_the_newest_of_that_name_counts() -> None:
    store = MemoryStore()
    assert run(find_topic(store, "cluster", "orders")) is None
    run(exporter(store).write(state(0, 1, number=(1, 10))))
    assert run(find_topic(store, "cluster", "orders")) == TOPIC_ID
    assert run(find_topic(store, "cluster", "order")) is None


def test_entries_that_do_not_tile_a_range_are_a_fault() -> None:
    assert not fault_of([entry(0), entry(1)], Offset(20))
    assert "begins at 20, not at 10" in fault_of([entry(0), entry(2)], Offset(30))
    assert "not at 30" in fault_of([entry(0), entry(1)], Offset(30))
    empty = msgspec.structs.replace(entry(0), end_offset=Offset(0))
    assert "ends at 0" in fault_of([empty], Offset(0))


# ---- pages -------------------------------------------------------------------------------------


def page_puts(store: MemoryStore) -> int:
    found = sum(1 for one in store.calls if one[0] == "put")
    store.calls.clear()
    return found


def test_an_export_of_many_segments_names_the_pages_of_the_one_before() -> None:
    store = MemoryStore()
    writer = exporter(store)
    assert run(writer.write(state(0, 2_500, number=(1, 3_000))))
    assert page_puts(store) == 3
    run(writer.write(state(0, 2_501, number=(1, 3_001))))
    assert page_puts(store) == 0
    # Retention at the front, some new ones at the end.
    later = state(1_500, 2_520, number=(1, 3_100))
    run(writer.write(later))
    assert page_puts(store) == 0
    assert newest(store) == later
    heads = [one for one in store.objects if one.startswith(PLACE.exports_prefix)]
    assert max(len(store.objects[one][0]) for one in heads) < HEAD_BYTES_MAX


def test_a_merge_in_the_middle_costs_a_page_and_not_all_of_them() -> None:
    store = MemoryStore()
    writer = exporter(store)
    before = state(0, 4_000, number=(1, 5_000))
    run(writer.write(before))
    page_puts(store)
    merged = msgspec.structs.replace(entry(1_500, attempt="m"), end_offset=Offset(15_020))
    live = (*before.live[:1_500], merged, *before.live[1_502:])
    after = msgspec.structs.replace(before, live=live, number=ExportNumber(Epoch(1), Index(5_001)))
    run(writer.write(after))
    assert page_puts(store) == 1
    assert newest(store) == after


def test_pages_hold_all_entries_whatever_changes() -> None:
    """Segments are added, merged and retired; each export has exactly those that are live."""
    store = MemoryStore()
    writer = exporter(store)
    first, last = 0, 0
    for step in range(30):
        last += (37 * step) % 400
        first = min(last, first + (53 * step) % 300)
        written = state(first, last, number=(1, 10 + step))
        run(writer.write(written))
        assert newest(store).live == written.live
    assert last - first > PAGE_ENTRIES_MAX


def test_too_many_pages_are_laid_out_again() -> None:
    live = [entry(one) for one in range(1_000)]
    known = []
    for at in range(0, 1_000, 4):
        entries = tuple(live[at : at + 4])
        known.append(Page(PageRef(entries[0].base_offset, f"p{at}", 4, 0), entries))
    assert len(known) > PAGES_MAX
    layout = lay_out(live, known, "again")
    assert len(layout.pages) == 1


def test_a_head_that_is_too_large_is_refused_and_few_retired_objects_are_named() -> None:
    store = MemoryStore()
    retired = tuple(RetiredObject(f"r{one}", one) for one in range(3 * RETIRED_MAX))
    run(write_export(store, state(0, 3, number=(1, 10), retired=retired), (), "a"))
    assert newest(store).retired == retired[-RETIRED_MAX:]
    large = msgspec.structs.replace(
        state(0, 3, number=(1, 11)), topic_config={"key": "v" * HEAD_BYTES_MAX}
    )
    with pytest.raises(ExportTooLargeError, match="orders-0"):
        run(write_export(store, large, (), "b"))


# ---- the exporter ------------------------------------------------------------------------------


def test_an_export_is_written_if_the_bucket_says_something_else() -> None:
    store = MemoryStore()
    writer = exporter(store)
    first = state(0, 3, number=(2, 10), at_ms=1)
    assert not writer.says(first)
    assert run(writer.write(first))
    later = state(0, 3, number=(2, 90), at_ms=2)
    assert writer.says(later), "only records came, which are not in the bucket"
    assert not run(writer.write(later))
    assert run(writer.write(state(0, 4, number=(2, 91))))
    assert len(run(list_numbers(store, PLACE))) == 2


def test_another_configuration_with_the_same_log_has_the_clusters_later_version() -> None:
    store = MemoryStore()
    writer = exporter(store)
    run(writer.write(state(0, 3, number=(2, 10), version=7)))
    assert run(writer.write(state(0, 3, number=(2, 10), version=9, partition_count=4)))
    assert newest(store).partition_count == 4
    # Another leader, of before the change.
    assert not run(exporter(store).write(state(0, 3, number=(2, 10), version=8)))
    assert newest(store).partition_count == 4


def test_a_new_leader_reads_what_the_bucket_has_and_repeats_nothing() -> None:
    store = MemoryStore()
    written = state(0, 2_500, number=(2, 3_000))
    run(exporter(store).write(written))
    page_puts(store)
    successor = exporter(store)
    assert not run(
        successor.write(
            msgspec.structs.replace(written, number=ExportNumber(Epoch(3), Index(3_001)))
        )
    )
    assert run(successor.write(state(0, 2_501, number=(3, 3_002))))
    assert page_puts(store) == 0


def test_a_deposed_leader_that_finds_a_later_export_writes_nothing() -> None:
    store = MemoryStore()
    run(exporter(store).write(state(0, 5, number=(3, 30))))
    assert not run(exporter(store).write(state(0, 4, number=(2, 20))))
    assert len(run(list_numbers(store, PLACE))) == 1


@pytest.mark.parametrize("is_applied", [True, False])
def test_after_an_unclear_answer_the_exporter_looks_what_is_there(*, is_applied: bool) -> None:
    store = MemoryStore()
    writer = exporter(store)
    run(writer.write(state(0, 1, number=(2, 10))))
    unclear = state(0, 2, number=(2, 20), at_ms=5)

    def fail(operation: str, name: str) -> None:
        if operation == "create":
            if is_applied:
                store.objects[name] = made
            raise StoreError("timeout")

    probe = MemoryStore()
    run(write_export(probe, unclear, (), "x"))
    made = probe.objects[PLACE.export_name(unclear.number)]
    store.fail = fail
    with pytest.raises(StoreError):
        run(writer.write(unclear))
    assert writer.newest is not None
    assert writer.newest.end_offset == 10, "only what is surely there counts"
    store.fail = lambda operation, name: None
    assert run(writer.write(msgspec.structs.replace(unclear, written_ms=9))) is not is_applied
    assert writer.says(unclear)
    assert newest(store).end_offset == 20


def test_an_object_may_go_once_the_newest_export_does_not_count_it() -> None:
    store = MemoryStore()
    writer = exporter(store)
    name = entry(0).name
    assert not writer.has_no_live(name), "it is not known what the bucket has"
    run(writer.write(state(0, 3, number=(2, 10))))
    assert not writer.has_no_live(name)
    run(writer.write(state(1, 3, number=(2, 11))))
    assert writer.has_no_live(name)
    assert not writer.has_no_live(entry(1).name)


def test_an_object_stays_while_an_export_that_counts_it_may_arrive_late() -> None:
    store = MemoryStore()
    writer = exporter(store)
    run(writer.write(state(0, 1, number=(2, 10))))
    late = entry(1).name
    assert writer.has_no_live(late)

    def fail(operation: str, name: str) -> None:
        if operation == "create":
            raise StoreError("timeout")

    store.fail = fail
    with pytest.raises(StoreError):
        run(writer.write(state(0, 2, number=(2, 20))))
    assert not writer.has_no_live(late), "the newest one that is surely there does not count it"
    store.fail = lambda operation, name: None
    run(writer.write(state(2, 3, number=(2, 30))))
    assert writer.has_no_live(late), "a later export is there, whatever arrives"


def test_no_export_is_overwritten() -> None:
    store = MemoryStore()
    run(write_export(store, state(0, 1, number=(2, 10)), (), "a"))
    with pytest.raises(ObjectExistsError):
        run(write_export(store, state(0, 1, number=(2, 10), at_ms=1), (), "b"))


# ---- old exports -------------------------------------------------------------------------------


def test_old_exports_go_but_the_newest_few_and_those_within_the_grace() -> None:
    store = MemoryStore()
    for one in range(10):
        store.now_ms = 100 * one
        run(write_export(store, state(0, 1, number=(1, one), at_ms=one), (), "a"))
    assert run(remove_old(store, PLACE, grace_ms=350)) == 5
    # The fifth was the newest one until 500, and 900 - 350 is later than that.
    assert [one.index for one in run(list_numbers(store, PLACE))] == [9, 8, 7, 6, 5]
    assert run(remove_old(store, PLACE, grace_ms=0)) == 2
    assert len(run(list_numbers(store, PLACE))) == KEPT_MIN


def test_with_a_long_grace_one_export_of_each_hour_stays() -> None:
    store, minute_ms, hours = MemoryStore(), 60_000, 48
    for one in range(hours * 6):
        store.now_ms = one * 10 * minute_ms
        run(write_export(store, state(0, 1, number=(1, one), at_ms=one), (), "a"))
    run(remove_old(store, PLACE, grace_ms=24 * 60 * minute_ms))
    left = [one.index for one in run(list_numbers(store, PLACE))]
    last = hours * 6 - 1
    assert left[:8] == [*range(last, last - 8, -1)], "all of the last hour, and the one before it"
    assert left[8:] == [one * 6 + 5 for one in range(hours - 3, hours - 26, -1)]
    assert run(remove_old(store, PLACE, grace_ms=24 * 60 * minute_ms)) == 0


def test_a_page_stays_while_an_export_names_it() -> None:
    store = MemoryStore()
    writer = exporter(store)
    for one in range(2 * WRITES_PER_REMOVAL):
        store.now_ms = 600 * one
        run(writer.write(state(60 * one, 300 + 120 * one, number=(1, one))))
    store.now_ms += 10_000
    run(writer.write(state(2_000, 2_010, number=(1, 99))))
    assert run(remove_old(store, PLACE, grace_ms=0)) > 0
    for number in run(list_numbers(store, PLACE)):
        run(read_export(store, PLACE, number))
    pages = [one for one in store.objects if one.startswith(PLACE.pages_prefix)]
    assert 0 < len(pages) < 10


def test_a_young_page_that_no_export_names_yet_stays() -> None:
    store = MemoryStore()
    store.now_ms = 5_000
    run(write_export(store, state(0, 1, number=(1, 1)), (), "a"))
    store.objects[PLACE.page_name(Offset(0), "new")] = (b"", 4_500)
    store.objects[PLACE.page_name(Offset(0), "orphan")] = (b"", 1_000)
    assert run(remove_old(store, PLACE, grace_ms=1_000)) == 1
    assert PLACE.page_name(Offset(0), "new") in store.objects
