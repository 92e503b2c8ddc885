"""Whether a replica of a topic of this cluster may answer a fetch; a read replica says so itself.

Owns:   nothing.
Source: KIP-320 and KIP-392."""

from typing import Protocol

from strandline.broker.context import Services
from strandline.broker.partitions import check_epoch
from strandline.model.ids import NO_BROKER
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica


class Check(Protocol):
    """Why a replica may not answer a client now; NONE if it may."""

    def __call__(self, client_epoch: int, *, serves_as_follower: bool) -> Error:
        """`client_epoch`: the leader epoch that the client knows; -1 for none."""


def check_own_replica(
    services: Services, replica: Replica, client_epoch: int, *, serves_as_follower: bool
) -> Error:
    """See `Check`."""
    if services.replication.replicas.get(replica.group) is not replica:
        return Error.NOT_LEADER_OR_FOLLOWER
    if replica.failed is not None:
        return Error.KAFKA_STORAGE_ERROR
    error = check_epoch(replica, client_epoch)
    if error is not Error.NONE:
        return error
    if replica.is_leader:
        may_serve = replica.can_serve_reads and replica.knows_start
    else:
        may_serve = (
            serves_as_follower
            and replica.leader_id != NO_BROKER
            and replica.knows_start
            and services.replication.log_start_offsets.is_known(replica)
        )
    return Error.NONE if may_serve else Error.NOT_LEADER_OR_FOLLOWER
