"""What is counted over one simulated year of one policy.

Why:    estimates, reports and tests read the same names; a year is one row of numbers.
How:    hours and counts are means over the topic's partitions unless they say "topic"."""

from dataclasses import astuple, dataclass, fields


@dataclass(slots=True)
class Tally:
    """One year."""

    stopped_h: float = 0.0
    """Partition hours in which acks=all waits for brokers or for an operator."""
    failover_h: float = 0.0
    """The same, while others elect a leader, one is appointed, or observers are promoted."""
    unreadable_h: float = 0.0
    """Partition hours without a leader while stopped."""
    election_h: float = 0.0
    """Partition hours without a leader while one is elected or appointed."""
    stopped_sampled_h: float = 0.0
    """As `stopped_h`: `stops_expected` times how long one stop lasted that was drawn (`stops`)."""
    unreadable_sampled_h: float = 0.0
    """As `unreadable_h`, of the same stop."""
    thin_h: float = 0.0
    """Partition hours in which one more lost broker could take acknowledged records along, if no
    absent broker came back."""
    topic_stopped_h: float = 0.0
    """Hours in which any partition was stopped."""
    stops: float = 0.0
    """How often a partition stopped."""
    stops_expected: float = 0.0
    """The same, expected: the rate of losses that would stop it, over the time it was in danger."""
    losses_topic: float = 0.0
    """How often acknowledged records of the topic may have been lost for good."""
    losses_topic_expected: float = 0.0
    """The same, expected."""
    losses_partitions: float = 0.0
    """Share of partitions that may have lost records."""
    lost_gb: float = 0.0
    """At most so much was lost, over all partitions."""
    repair_gb: float = 0.0
    """Copied to make replicas anew, over all partitions."""
    repair_cross_region_gb: float = 0.0
    repair_cost: float = 0.0
    """Money, for these copies."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields, in order."""
        return tuple(one.name for one in fields(cls))

    def row(self) -> tuple[float, ...]:
        """The numbers, in the order of `names`."""
        return astuple(self)
