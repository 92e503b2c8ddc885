"""A request to the solver: a policy, and the inputs that are not part of it."""

from dataclasses import dataclass

from strandline.placement.constraints.capacity import DISK_USED_PERCENT_MAX
from strandline.placement.policy.document import Policy
from strandline.placement.topology.round_trips import RoundTrips

DEFAULT_VOTERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All inputs of the solver except the candidate brokers."""

    policy: Policy
    min_insync_replicas: int = 1
    default_voters: int = DEFAULT_VOTERS
    """The number of voters if neither counts nor `survive` give one: the topic's replication
    factor."""
    round_trips: RoundTrips | None = None
    takes_down_brokers: bool = False
    """Whether brokers that are down or in maintenance may get replicas if no others are left."""
    disk_used_percent_max: int = DISK_USED_PERCENT_MAX
    disk_high_percent: int = 100
    """Brokers whose disks are at least this full get replicas only if no others are left; those at
    `disk_used_percent_max` get none."""
