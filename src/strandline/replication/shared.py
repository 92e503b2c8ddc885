"""The components that a broker has once and all its replicas share.

Why:    connections, memory, heartbeats and the state journal belong to the broker; a component of
        one replica takes those that it needs from here, and never the whole `Replication`.
Owns:   nothing; `Replication` has it made.
Source: design section 5."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.base.network import Network
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.catchup.throttle import RecoveryThrottle
from strandline.replication.host.control_outbox import ControlOutbox
from strandline.replication.host.nearness import Nearness
from strandline.replication.leader.mark_notices import MarkNotices
from strandline.replication.leader.send_queues import BulkQueues
from strandline.replication.liveness.bound_votes import BoundVotes
from strandline.replication.liveness.liveness import Liveness
from strandline.replication.liveness.peer_contacts import PeerContacts
from strandline.replication.memory_budget import MemoryBudget
from strandline.replication.relay.relay_watch import RelayWatch
from strandline.replication.replica.durable_state import DurableState
from strandline.replication.replica.raft_factory import RaftFactory
from strandline.replication.replica.state import ReplicaState
from strandline.replication.settings import ReplicationSettings
from strandline.storage.reserve import Reserve


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """See the module; one per broker."""

    self_id: BrokerId
    clock: Clock
    settings: ReplicationSettings
    network: Network
    memory: MemoryBudget
    queues: BulkQueues
    throttle: RecoveryThrottle
    nearness: Nearness
    outbox: ControlOutbox
    mark_notices: MarkNotices
    relay_watch: RelayWatch
    liveness: Liveness
    contacts: PeerContacts
    bound_votes: BoundVotes
    reserve: Reserve
    durable: DurableState
    cores: RaftFactory
    wrong_buckets: set[str] = field(default_factory=set)
    """Buckets that are not those of their names (decision 0068): nothing counts as held there."""


def make_shared(
    *,
    self_id: BrokerId,
    clock: Clock,
    rng: random.Random,
    disk: Disk,
    network: Network,
    settings: ReplicationSettings,
    data_directory: str,
    session: int,
    replicas: Mapping[GroupId, ReplicaState],
    peers: Collection[BrokerId],
    on_rejoin_asked: Sequence[object],
) -> Shared:
    """Make all of it. `session`: the first number of this process's heartbeat sessions; `replicas`
    and `peers`: as they are at any time; `on_rejoin_asked`: see `RaftFactory`."""
    durable = DurableState(self_id)
    liveness = Liveness(
        self_id=self_id,
        clock=clock,
        rng=rng,
        settings=settings,
        session=session,
        replicas=replicas,
        remembered=durable.epoch_of,
    )
    return Shared(
        self_id=self_id,
        clock=clock,
        settings=settings,
        network=network,
        memory=MemoryBudget(settings.memory_bytes_max),
        queues=BulkQueues(clock, limit_bytes=settings.queue_bytes_max),
        throttle=RecoveryThrottle(
            clock,
            bytes_per_s=settings.recovery_bytes_per_s,
            cross_region_bytes_per_s=settings.recovery_cross_region_bytes_per_s,
        ),
        nearness=Nearness(),
        outbox=ControlOutbox(clock, network, peers),
        mark_notices=MarkNotices(clock),
        relay_watch=RelayWatch(clock),
        liveness=liveness,
        contacts=liveness.contacts,
        bound_votes=liveness.bound_votes,
        reserve=Reserve(clock, disk, data_directory, size_bytes=settings.reserve_bytes),
        durable=durable,
        cores=RaftFactory(self_id, durable, on_rejoin_asked),
    )
