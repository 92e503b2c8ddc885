"""Why a placement is as it is, and what it costs: data for `topic explain`, `cluster explain` and
`policy test`. Pure.

Map:    explanation.py (all of it, for one partition), topics.py (a topic that exists, with all its
        partitions), acting.py (as it votes now), mending.py (what would make it right), outcomes.py
        (who acts after each class of loss), cut_links.py (who may go on while a link is cut),
        regions.py (which regions are taken for down then), exposure.py (what one more loss would do
        to a cluster), replicas.py (why each replica is where it is, and what else could be),
        latency.py (what a write waits for), traffic.py (what crosses regions and zones), prices.py
        (a price table, and what that costs), copies.py (what it takes to copy logs elsewhere),
        amounts.py (bytes and durations for people).
Source: design section 7; decision 0008."""
