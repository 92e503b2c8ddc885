"""Decides whether a broker, a zone, a region or a link is down, and whose repair waits. Pure.

Map:    domains.py (zones and regions, and how they are named), sight.py (who is heard from which
        zones), links.py (which links between single brokers are cut), marks.py (when a domain is
        down, and when it is back), happenings.py (what is going on, in words), judging.py (all of
        it together, as time goes by), alarms.py (what begins, and what is over), voting.py
        (partitions that go on with less, or not at all), leaderless.py (which of them nobody
        leads), too_few.py (which of them take no acks=all).
Source: design section 8; decision 0018."""
