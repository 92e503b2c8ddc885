"""DescribeTopology: labels, live brokers, and measured round trips.

Source: decision 0008."""

from dataclasses import replace

import msgspec
from tests.broker.broker_world import OTHER, SELF, BrokerWorld
from tests.broker.cluster_world import ClusterWorld

from strandline.model.cluster import Labels
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
    TopologyLabel,
)


def test_every_label_that_is_set_is_told(world: BrokerWorld) -> None:
    labels = Labels(region="west", host="h2", free=(("disk", "ssd"), ("power", "a")))
    brokers = world.cluster.brokers
    brokers[OTHER] = replace(brokers[OTHER], labels=labels)
    world.replication.silent.add(OTHER)
    world.replication.round_trips_ms[OTHER] = 31
    answer = world.ask(DescribeTopologyRequest(), DescribeTopologyResponse, 0)
    assert answer.broker_id == SELF
    here, there = answer.brokers
    assert (here.broker_id, here.is_alive, here.round_trip_ms) == (SELF, True, -1)
    assert here.labels == [TopologyLabel("region", "east")]
    assert (there.broker_id, there.is_alive, there.round_trip_ms) == (OTHER, False, 31)
    assert [msgspec.structs.astuple(one) for one in there.labels] == [
        ("region", "west"),
        ("host", "h2"),
        ("disk", "ssd"),
        ("power", "a"),
    ]


def test_brokers_measure_each_other_by_their_heartbeats() -> None:
    world = ClusterWorld()
    world.until_started()
    world.advance(2_000)

    def topology_of(broker: int) -> DescribeTopologyResponse:
        return world.ask(broker, DescribeTopologyRequest(), DescribeTopologyResponse, 0)

    for broker in world.hosts:
        answer = topology_of(broker)
        assert answer.broker_id == broker
        ways = {one.broker_id: one.round_trip_ms for one in answer.brokers}
        assert ways.pop(broker) == -1
        # Two ways of 0.5 to 0.6 ms, by a clock of whole milliseconds.
        assert len(ways) == 3 and set(ways.values()) <= {1, 2}
    world.hosts[4].kill()
    world.advance(10_000)
    gone = topology_of(1).brokers[3]
    assert (gone.broker_id, gone.is_alive) == (4, False)
    assert gone.round_trip_ms in (1, 2)
    world.close()
