"""What a replica does while it leads: the append path, and one stream to each follower.

Map:    appender.py             the batcher: waiting requests become one append
        unknown_producers.py    holds a batch that may have overtaken an earlier one
        leadership.py           what exists only while a replica leads: its appends and their tail
        append_sender.py        sends each follower what it may be sent next
        followers.py            what a leader hears of its followers, and which of them keep up
        requests.py             produce requests and their results
        follower_stream.py      the stream to one follower
        window.py               how many bytes and requests may be in flight to a follower
        urgency.py              which followers a request waits for
        mark_notices.py         reports marks that no append carries; one per broker
        send_queues.py          bytes that wait for each peer's socket; one per broker
        tail.py                 the newest entries, still in memory, as an append carries them
        append_times.py         when recent entries were appended
        replica_status.py       how far each replica is, and for how long it has lagged
        leadership_transfer.py  leadership transfer: requests held until the next leader is known
"""
