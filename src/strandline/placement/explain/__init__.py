"""The reasons and costs of a placement: data for `topic explain`, `cluster explain` and
`policy test`. Pure.

Map:    explanation.py (all of it, for one partition), topics.py (an existing topic, with all its
        partitions), acting.py (with the present voters), repairs.py (the moves that would repair
        it), outcomes.py (the effect of each class of loss), exposure.py (the effect of one more
        loss on a cluster), stopping.py (whether brokers may stop together now), replicas.py (why
        each replica is on its broker, and the alternatives), piles.py (preferred leaders that pile
        up), latency.py (the round trip of a write), traffic.py (bytes across regions and zones),
        prices.py (a price table, and costs), copies.py (bytes and time to copy logs elsewhere),
        amounts.py (bytes and durations for people).
Source: design section 7; decision 0008."""
