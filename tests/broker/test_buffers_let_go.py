"""The memory of a produce request is free once the followers' sockets have its bytes, before it is
acknowledged.

Source: Redpanda RFC 20220119, "Memory usage" ("so that all the user space buffer can be freed")."""

import weakref

import pytest
from tests.broker.broker_world import Pending, Sink, batch_of, frame_of
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_write_caching import slow_down

from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


class Frame(bytearray):
    """The bytes of a request, whose end can be seen."""


def send(cluster: ClusterWorld, *, at: int, acks: int) -> tuple[Pending, weakref.ref[Frame]]:
    """A produce request; (what is answered, where its bytes are while anybody has them)."""
    timestamp = cluster.broker(at).services.clock.wall_ms()
    batch = batch_of(bytes(10_000), timestamp=timestamp)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(records=batch)])
        ],
    )
    frame = Frame(frame_of(request, 9))
    pending = Pending(Sink())
    router = cluster.broker(at).router
    pending.context = router.open(memoryview(frame), pending.sink)
    process = cluster.hosts[at].process
    assert process is not None
    process.run_now(lambda: router.run(pending.context))
    return pending, weakref.ref(frame)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_batch_leaves_the_memory_before_anybody_has_flushed_it(
    cluster: ClusterWorld, acks: int
) -> None:
    cluster.create_topic("t")
    cluster.advance(1_000)
    leader = cluster.leader_of("t")
    slow_down(cluster)
    pending, frame = send(cluster, at=leader, acks=acks)
    assert frame() is not None
    cluster.advance(500)
    replica = cluster.replicas_of("t")[leader]
    assert (pending.is_answered, replica.high_watermark > 0) == (acks == 1, acks == 1)
    memory = replica.host.memory
    assert (memory.used_bytes, memory.kept_bytes) == (0, 0)
    assert frame() is None
    cluster.until(lambda: pending.is_answered)
    assert pending.answer(ProduceResponse).responses[0].partition_responses[0].error_code == 0
