"""Decides whether a broker, a zone, a region or a link is down, and which repair waits. Pure.

Map:    domains.py (zones and regions, and their names), sight.py (which zones hear which brokers),
        links.py (which links between single brokers are cut), marks.py (when a domain is down, and
        when it is back), happenings.py (present events, in words), judging.py (all of it together,
        over time), alarms.py (events that begin or end), voting.py (partitions with fewer voters,
        or with none that lead), bucket_lists.py (buckets that some broker lacks, or confuses),
        election_timeouts.py (brokers that differ in it), fault_alarms.py (faults that begin or
        end), leaderless.py (partitions without a leader), too_few.py (partitions that refuse
        acks=all), outlook.py (what becomes of such partitions), regions.py (how many silent
        brokers make a region count as down, for forecasts).
Source: design section 8; decision 0018."""
