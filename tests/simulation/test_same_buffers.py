"""What a leader appends, flushes and sends are the same bytes, side by side.

Source: Redpanda's RFC 20220119: "batches coming from replicate_batcher are not first handed off to
the disk and then read again, but rather shared to generate a leader disk write and follower
append_entries requests"; design section 5."""

from collections.abc import Callable, Sequence

import pytest
from tests.simulation.full_speed import FullSpeedProducer, leader_of, run_for
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.base.disk import Buffer
from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.records.batch import BatchHeader
from strandline.simulation.network.network import SimNetwork
from strandline.storage.log.log import Log

BATCH_BYTES = 10_000


def memory_of(buffer: Buffer) -> object:
    """What owns the bytes; it lives for as long as the view, so that it is nothing else's."""
    return memoryview(buffer).obj


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_the_same_buffers_go_to_the_log_and_to_each_follower(
    acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = started(plain_scenario(flush_us=(20_000, 20_000)))
    replica = leader_of(world)
    run_for(world, 500)
    appended: list[Buffer] = []
    sent: dict[BrokerId, list[Buffer]] = {}
    unflushed: list[bool] = []
    append, send = Log.append, SimNetwork.send

    def appending(log: Log, buffers: Sequence[Buffer], headers: Sequence[BatchHeader]) -> None:
        if log is replica.log:
            appended.extend(buffers)
        append(log, buffers, headers)

    def sending(
        network: SimNetwork,
        peer: BrokerId,
        lane: Lane,
        parts: Sequence[Buffer],
        on_handed: Callable[[], None] | None = None,
    ) -> bool:
        if network.self_id == replica.self_id and lane is Lane.BULK:
            large = [part for part in parts if len(part) > BATCH_BYTES]
            if large:
                sent.setdefault(peer, []).extend(large)
                unflushed.append(replica.log.flushed_index < replica.log.last_index)
        return send(network, peer, lane, parts, on_handed)

    monkeypatch.setattr(Log, "append", appending)
    monkeypatch.setattr(SimNetwork, "send", sending)
    producer = FullSpeedProducer(
        world, replica, acks=acks, batch_bytes=BATCH_BYTES, requests_per_pass=3
    )
    run_for(world, 10)
    producer.is_stopped = True
    run_for(world, 500)
    assert len(appended) >= 3
    assert set(sent) == set(replica.configuration.voters) - {replica.self_id}
    owners = [id(memory_of(buffer)) for buffer in appended]
    for buffers in sent.values():
        assert [id(memory_of(buffer)) for buffer in buffers] == owners
    assert any(unflushed), "no follower waits for the leader's disk"
    assert producer.errors == []
