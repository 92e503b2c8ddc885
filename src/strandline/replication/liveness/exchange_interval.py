"""How often two brokers exchange heartbeats while nothing changes.

Why:    idle brokers should send little, and yet a silent leader must be noticed, and no lease may
        end, as if they sent much.
How:    the longest interval for which both of these hold:
        - at most `INTERVAL_RATIO` of the election time-out passes between two heartbeats. A
          follower's time-out starts with the last one, so the next may be late by the rest;
        - a lease outlives one lost exchange. The lease begins when the answered heartbeat is sent.
          The next one is sent an interval later, and is lost. A round trip later it is overdue
          (`heartbeat_exchanges`), and the repetition over the other connection is answered after
          another round trip:

              interval + 2 round trips + 1.5 ticks <= lease

          An exchange begins half a tick early or late, and an answer is overdue after one tick
          more than the round trip; a tick is half of `heartbeat_interval_ms`.

        Never below `heartbeat_interval_ms`, which is also the interval whenever something has
        changed or is overdue.
Owns:   nothing.
Source: decision 0073; Raft thesis 6.4.1 for leases."""

from strandline.replication.settings import ReplicationSettings

INTERVAL_RATIO = 0.55
SLACK_HEARTBEATS = 0.75
"""One tick and a half."""


def exchange_interval_ms(settings: ReplicationSettings, rtt_ms: float) -> int:
    """Between two exchanges with a peer this far away."""
    lease_ms = settings.election_timeout_ms * settings.lease_ratio
    least_ms = settings.heartbeat_interval_ms
    longest_ms = settings.election_timeout_ms * INTERVAL_RATIO
    repeated_ms = lease_ms - 2 * rtt_ms - SLACK_HEARTBEATS * least_ms
    return max(least_ms, int(min(longest_ms, repeated_ms)))
