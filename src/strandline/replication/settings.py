"""The limits and intervals of replication, each with its unit and its reason.

Source: STYLE, rule 5; design section 5."""

from dataclasses import dataclass

from strandline.base.errors import OperatorError


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """Must agree on all brokers of a cluster where it says so.

    heartbeat_interval_ms:   the shortest interval of heartbeats to a peer; see
                             `liveness.exchange_interval`.
    election_timeout_ms:     the least time without a leader's sign of life before a follower stands
                             for election, and for which it refuses to vote against that leader.
                             Leases rest on it: must agree.
    election_spread_ms:      the random part on top; also grows by 4 round trips to the leader.
    resend_timeout_ms:       no acknowledgement for this long (plus 4 round trips, plus the time of
                             the appends in flight at the measured speed): the leader probes.
    append_bytes_max:        one append to a follower; a single batch may be larger.
    inflight_bytes_max, inflight_count_max: the window of one follower, at most; see `window`.
    memory_bytes_max:        accepted batches that enough followers' sockets do not have yet, over
                             all groups.
    tail_bytes_max:          the same for one group; also how much of one group stays in memory for
                             followers: older entries are read from the log.
    queue_bytes_max:         bytes that wait for the socket to one broker, over all groups; one
                             append more may be queued.
    recovery_bytes_per_s:    how fast followers are served from the log, over all groups; see
                             `throttle`; `recovery_cross_region_bytes_per_s` for other regions.
    compaction_slice_bytes:  how much of a log is compacted before other work has its turn; a batch
                             at least.
    reserve_bytes:           how much of the disk is kept for the controller's log and for votes;
                             see `storage.reserve`.
    relays:                  whether new entries cross to a region once, through one of the replicas
                             there; see `relays`.
    lease_ratio:             a leader's lease is this share of the election timeout (clock drift
                             eats the rest).
    patience_ratio:          multiplies the times after which a voter counts as lost or as back, and
                             a group as stuck. No key sets it; simulations do, so that roles change
                             often within a short history."""

    heartbeat_interval_ms: int = 100
    election_timeout_ms: int = 800
    election_spread_ms: int = 400
    resend_timeout_ms: int = 1_000
    append_bytes_max: int = 1024 * 1024
    inflight_bytes_max: int = 16 * 1024 * 1024
    inflight_count_max: int = 256
    memory_bytes_max: int = 32 * 1024 * 1024
    tail_bytes_max: int = 4 * 1024 * 1024
    queue_bytes_max: int = 4 * 1024 * 1024
    recovery_bytes_per_s: int = 32 * 1024 * 1024
    recovery_cross_region_bytes_per_s: int = 32 * 1024 * 1024
    compaction_slice_bytes: int = 32 * 1024
    reserve_bytes: int = 64 * 1024
    relays: bool = True
    lease_ratio: float = 0.85
    patience_ratio: float = 1.0

    def __post_init__(self) -> None:
        if self.election_timeout_ms < 3 * self.heartbeat_interval_ms:
            raise OperatorError(
                "[replication] election_timeout_ms must be at least 3 x heartbeat_interval_ms "
                f"({3 * self.heartbeat_interval_ms} ms)"
            )
