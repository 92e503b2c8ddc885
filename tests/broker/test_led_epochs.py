"""In which epoch a broker reports to its peers that it leads.

Source: `replication.liveness.sessions`; decision 0013 (handing over)."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.events import ConfigurationChanged, Received
from strandline.raft.messages import NO_HINT, AppendResponse
from strandline.replication.replica.driver import PERFORM


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Four brokers that have joined."""
    with joined(ClusterWorld()) as world:
        yield world


def test_who_has_moved_on_does_not_say_that_it_leads_the_next_epoch(cluster: ClusterWorld) -> None:
    """The core is ahead of what is done: between a configuration's commit and the end of the reign,
    decided in one step, the next epoch's vote has to be durable, and heartbeats go on."""
    cluster.create_topic("t", replicas=3)
    cluster.until(lambda: bool(cluster.leader_of("t")))
    cluster.advance(500)
    leader = cluster.leader_of("t")
    replica = cluster.replicas_of("t")[leader]
    peer = next(one for one in replica.configuration.voters if one != leader)
    led, later = replica.epoch, Epoch(replica.epoch + 1)
    replica.raft.step(Received(peer, AppendResponse(later, False, hint=NO_HINT), False))
    assert replica.epoch == later and replica.is_leader
    effect = ConfigurationChanged(Index(0), replica.configuration, committed=False)
    PERFORM[type(effect)](replica, effect, None)
    session = replica.host.liveness.contacts.lead_session(BrokerId(peer))
    session._reset_acknowledgements()
    assert (replica.group, led) in session.heartbeat(0).changes
