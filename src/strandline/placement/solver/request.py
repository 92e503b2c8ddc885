"""A request to the solver: a policy, and what it does not say itself."""

from dataclasses import dataclass

from strandline.placement.constraints.capacity import DISK_USED_PERCENT_MAX
from strandline.placement.policy.document import Policy
from strandline.placement.topology.round_trips import RoundTrips

DEFAULT_VOTERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything but the candidates."""

    policy: Policy
    min_insync_replicas: int = 1
    default_voters: int = DEFAULT_VOTERS
    """Voters where neither counts nor `survive` say how many: the topic's replication factor."""
    round_trips: RoundTrips | None = None
    takes_down_brokers: bool = False
    """Whether a broker that is down, or in maintenance, may be given replicas, when there are no
    others."""
    disk_used_percent_max: int = DISK_USED_PERCENT_MAX
    disk_high_percent: int = 100
    """Rather than brokers whose disks are as full as this, others; those with `..._max` never."""
