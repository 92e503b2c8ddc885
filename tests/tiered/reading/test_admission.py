"""What stays in the cache: one long read does not push out what many readers use.

Source: decision 0060; Karedla et al. 1994."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.tiered.reading.admission import SAME_USE_MS, SegmentedLru

KEYS = st.integers(0, 12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "use", "discard", "wait"]), KEYS, st.integers(1, 40))
)


def test_what_is_used_again_later_survives_a_long_read() -> None:
    lru: SegmentedLru[str] = SegmentedLru(100)
    for key in ("a", "b"):
        assert lru.add(key, 30, 0) == []
        lru.use(key, SAME_USE_MS)
    gone = [one for at in range(50) for one in lru.add(f"long {at}", 10, SAME_USE_MS)]
    assert "a" in lru and "b" in lru
    assert len(gone) == 50 - (100 - 60) // 10


def test_several_fetches_of_one_reader_are_one_use() -> None:
    lru: SegmentedLru[str] = SegmentedLru(100)
    lru.add("a", 50, 0)
    for now_ms in range(0, SAME_USE_MS, 1_000):
        lru.use("a", now_ms)
    lru.add("b", 50, SAME_USE_MS)
    assert lru.add("c", 50, SAME_USE_MS) == ["a"]


def test_what_is_too_large_is_not_kept() -> None:
    lru: SegmentedLru[str] = SegmentedLru(10)
    assert lru.add("a", 11, 0) == ["a"]
    assert (lru.size_bytes, len(lru)) == (0, 0)


@given(STEPS)
def test_sizes_add_up_and_stay_below_the_limit(steps: list[tuple[str, int, int]]) -> None:
    lru: SegmentedLru[int] = SegmentedLru(100)
    kept: dict[int, int] = {}
    now_ms = 0
    for step, key, size in steps:
        if step == "add" and key not in kept:
            kept[key] = size
            for gone in lru.add(key, size, now_ms):
                del kept[gone]
        elif step == "use":
            lru.use(key, now_ms)
        elif step == "discard":
            assert lru.discard(key) == (kept.pop(key, None) is not None)
        else:
            now_ms += size * 1_000
        assert lru.size_bytes == sum(kept.values()) <= 100
        assert len(lru) == len(kept)
        assert all(one in lru for one in kept)
