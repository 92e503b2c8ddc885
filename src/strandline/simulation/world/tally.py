"""What a run did, in numbers.

Why:    a swarm that never does what it is for would find nothing, and look green.
Owns:   nothing.
Source: design section 10."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What a run did."""

    virtual_us: int = 0
    event_count: int = 0
    message_count: int = 0
    acknowledged_count: int = 0
    read_count: int = 0
    ruling_count: int = 0
    near_count: int = 0
    """Of the records read: by consumers that the leader sent to a replica near them."""
    declared_count: int = 0
    """Losses that an operator has declared."""
    given_up_count: int = 0
    """Records that were acknowledged, and lost by that."""
    commit_count: int = 0
    """Offsets of the consumer group that were committed."""
    generation_count: int = 0
    """How often a member of it was given its share."""
    election_count: int = 0
    start_count: int = 0
    lost_write_count: int = 0
    superseded_count: int = 0
    """Records that compaction took, in the logs at the end."""
    table_count: int = 0
    """How often a compacted log was read from its beginning to its end."""
    deletion_count: int = 0
    """Deletions of the oldest records that were answered."""
    upload_count: int = 0
    """Objects that went live in a tier, without any bytes."""
    copied_record_count: int = 0
    """Records that a read-only copy in another cluster served."""
    move_count: int = 0
    """Moves of replicas, and cancels, that were taken down."""
    balance_count: int = 0
    """Moves that the balancer has begun by itself."""
    copied_bytes: int = 0
    """Of entries, sent to brokers that had no replica of their partition at the start."""
    damage_count: int = 0
    """How often an audit met damage, and the log reported it."""
    void_fault_count: int = 0
    """Faults that found nothing to strike: no leader, a broker that was down already."""
    fault_counts: dict[str, int] = field(default_factory=dict)
    """{kind: how many happened}."""
    role_counts: dict[str, int] = field(default_factory=dict)
    """{one of `role_changes.KINDS`: how often}."""
