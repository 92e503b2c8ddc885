"""Why a placement is as it is, and what it costs: data for `topic explain`, `cluster explain` and
`policy test`. Pure.

Map:    explanation.py (all of it, for one partition), topics.py (a topic that exists, with all its
        partitions), acting.py (as it votes now), mending.py (what would make it right), outcomes.py
        (who acts after each class of loss), exposure.py (what one more loss would do to a cluster),
        stopping.py (whether brokers may stop together now), replicas.py (why each replica is where
        it is, and what else could be), piles.py (preferred leaders that pile up), latency.py (what
        a write waits for), traffic.py (what crosses regions and zones), prices.py (a price table,
        and what that costs), copies.py (what it takes to copy logs elsewhere), amounts.py (bytes
        and durations for people).
Source: design section 7; decision 0008."""
