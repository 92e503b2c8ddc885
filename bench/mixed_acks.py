"""The latency of acks=all on one partition: alone, beside acks=1, and beside more of acks=all.

Why:    both kinds share one log: acks=1 must not delay acks=all, nor overtake it.
How:    two producers of a fixed rate on one partition, alone and together. A second producer with
        acks=all shows the cost of twice the load; only the cost of acks=1 beyond that is the
        mixture's.
Source: Redpanda RFC 20220119 (latency spikes where acks levels were mixed)."""

import threading
from collections.abc import Iterator

from bench.paced import PacedProducer, create_topic

RATE = 200
SECONDS = 8


def mixed_acks_latencies(bootstrap: str, configs: dict[str, str]) -> Iterator[dict[str, object]]:
    """One row of figures for acks=all alone, one beside acks=1, one beside acks=all; all twice."""
    topic = "mixed-" + "-".join(configs)
    create_topic(bootstrap, topic, partitions=1, replicas=3, configs=configs)
    first = PacedProducer(bootstrap, topic, partitions=1)
    first.run(rate=RATE, seconds=SECONDS / 2)  # Warms up.
    first.close()
    for beside in ("", "1", "all", "", "1", "all"):
        waiting = PacedProducer(bootstrap, topic, partitions=1)
        other = PacedProducer(bootstrap, topic, partitions=1, acks=beside or "1")
        thread = threading.Thread(target=lambda one=other: one.run(rate=RATE, seconds=SECONDS))
        if beside:
            thread.start()
        waiting.run(rate=RATE, seconds=SECONDS)
        waiting.close()
        if beside:
            thread.join()
        other.close()
        yield {
            "beside_acks": beside,
            "p50_ms": waiting.deliveries.percentile_ms(50),
            "p99_ms": waiting.deliveries.percentile_ms(99),
            "failed": waiting.deliveries.failed,
        }
