"""The shape of a log against a plain list of epochs; quorums against `Configuration`."""

from hypothesis import given
from hypothesis import strategies as st
from tests.raft.member import configuration, epochs_of, shape

from strandline.model.ids import Index
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import Run

EPOCHS = st.lists(st.integers(1, 5), min_size=1, max_size=15).map(sorted)
FIRSTS = st.integers(0, 20)


@given(EPOCHS, FIRSTS, st.data())
def test_runs_say_what_the_epochs_are(epochs: list[int], first: int, data: st.DataObject) -> None:
    log = shape(*epochs, first=first)
    low = data.draw(st.integers(first, log.last_index))
    high = data.draw(st.integers(low - 1, log.last_index))
    said: list[int] = []
    for run in log.runs(low, high):
        said += [run.epoch] * (run.last_index - low - len(said) + 1)
    assert said == epochs[low - first : high - first + 1]


@given(EPOCHS, FIRSTS, st.data())
def test_the_end_of_agreement_is_where_epochs_first_differ(
    epochs: list[int], first: int, data: st.DataObject
) -> None:
    log = shape(*epochs, first=first)
    start = data.draw(st.integers(first, log.last_index + 3))
    run = Run(data.draw(st.integers(1, 5)), start + data.draw(st.integers(0, 8)))
    expected = start - 1
    while expected < run.last_index and expected + 1 - first < len(epochs):
        if epochs[expected + 1 - first] != run.epoch:
            break
        expected += 1
    assert log.agreeing_end(start, run) == expected


@given(EPOCHS, FIRSTS, st.integers(0, 6), st.integers(-2, 40))
def test_the_last_entry_of_an_epoch_or_before_it(
    epochs: list[int], first: int, epoch: int, limit: int
) -> None:
    log = shape(*epochs, first=first, previous=epochs[0] - 1)
    known = {first - 1: epochs[0] - 1} | {first + at: e for at, e in enumerate(epochs)}
    fitting = [index for index, e in known.items() if e <= epoch and index <= limit]
    assert log.last_of(epoch, limit) == max(fitting, default=first - 2)


@given(EPOCHS, FIRSTS, EPOCHS, st.data())
def test_cutting_and_appending_are_as_for_a_list(
    epochs: list[int], first: int, more: list[int], data: st.DataObject
) -> None:
    log = shape(*epochs, first=first)
    cut = data.draw(st.integers(first, log.last_index))
    log.truncate(cut)
    kept = epochs[: cut - first]
    assert (log.generation, log.flushed_index) == (1, cut - 1)
    for epoch in (e for e in more if e >= max(kept, default=0)):
        log.append(epoch, Index(log.last_index + 1))
        kept.append(epoch)
    assert epochs_of(log) == kept
    start = data.draw(st.integers(first, log.last_index + 1))
    before = log.epoch_at(start - 1)
    log.drop_prefix(start, start)
    assert epochs_of(log) == kept[start - first :]
    assert log.previous_epoch == before
    assert log.last_epoch == (kept[-1] if kept[start - first :] else before)


@given(
    st.sets(st.integers(1, 5), min_size=1),
    st.sets(st.integers(1, 5)),
    st.integers(1, 5),
    st.lists(st.integers(-1, 20), min_size=5, max_size=5),
)
def test_quorums_are_what_the_configuration_says(
    voters: set[int], old: set[int], min_insync: int, reached: list[int]
) -> None:
    joint = configuration(tuple(voters), old=tuple(old), min_insync=min_insync)
    progress = {}
    for broker, index in enumerate(reached, start=1):
        progress[broker] = Progress(broker, Index(0))
        progress[broker].match_flushed = index
        progress[broker].match_written = index + 1
    expected = joint.quorum_index(dict(enumerate(reached, start=1)))
    quorums = Quorums(joint, progress)
    assert quorums.flushed(100) == expected
    assert quorums.written(100) == expected + 1
    assert quorums.flushed(3) == min(3, expected)
    blockers = {broker for broker, index in enumerate(reached, start=1) if index >= 5}
    outsiders = (voters | old) - blockers
    sets = [one for one in (voters, old) if one]
    can_elect = [2 * len(one & outsiders) > len(one) for one in sets]
    assert joint.blocks_election(blockers) is not any(can_elect)
    assert joint.can_commit([b for b, index in enumerate(reached, start=1) if index >= expected])
