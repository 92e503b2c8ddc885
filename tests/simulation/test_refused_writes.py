"""What a core decided and its disk had no room for has not happened: not the marks either."""

from collections.abc import Callable
from errno import ENOSPC

import pytest
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.model.ids import Epoch, GroupId, Index
from strandline.raft.messages import AppendRequest, Run
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.replica.entries import Entries
from strandline.storage.state_journal import GroupState, StateJournal

MS = 1_000


def test_what_could_not_be_made_durable_commits_nothing_that_lay_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = started(plain_scenario())
    world.scheduler.run_until(world.scheduler.now_us + 500 * MS)
    old = next(replica for replica in world.cluster.replicas() if replica.is_serving)
    host = world.hosts[old.self_id]
    others = [broker for broker in world.scenario.brokers if broker != old.self_id]
    for broker in others:
        world.hosts[broker].on_down = None
        world.hosts[broker].kill()
    assert host.process is not None
    records = [Record(offset_delta=n, key=None, value=b"x") for n in range(3)]
    lonely = build_batch(records)
    host.process.run_now(
        lambda: old.replicate([lonely], list(iterate_headers(lonely)), acks=0, done=lambda _: None)
    )
    world.scheduler.run_until(world.scheduler.now_us + 100 * MS)
    commit, epoch = old.raft.commit, Epoch(old.epoch + 1)
    last = Index(commit + 3)
    assert old.log.last_index == last

    batch = build_batch(records, base_offset=old.log.offset_of(Index(commit + 1)), epoch=epoch)
    request = AppendRequest(
        epoch, commit, old.log.epoch_of(commit), last, last, (Run(epoch, last),)
    )

    def hear() -> None:
        old.on_append(others[0], request, Entries.checked(memoryview(batch), request))

    put = StateJournal.put

    def refuse(
        journal: StateJournal,
        group: GroupId,
        state: GroupState,
        done: Callable[[OSError | None], None],
    ) -> None:
        old.host.clock.call_soon(lambda: done(OSError(ENOSPC, "No space left on device")))

    monkeypatch.setattr(StateJournal, "put", refuse)
    host.process.run_now(hear)
    world.scheduler.run_until(world.scheduler.now_us + 10 * MS)
    assert not old.is_busy
    assert (old.epoch, old.raft.commit) == (epoch - 1, commit)
    monkeypatch.setattr(StateJournal, "put", put)
    host.process.run_now(hear)
    world.scheduler.run_until(world.scheduler.now_us + 50 * MS)
    assert (old.log.last_index, old.log.epoch_of(last)) == (last, epoch)
    assert old.raft.commit == last
