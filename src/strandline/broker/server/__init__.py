"""Client connections: frames in, ordered answers out.

Map:    server.py           connections of all listeners; sweeps idle ones
        admission.py        which clients come in
        listening.py        one socket that accepts clients
        connection.py       one client
        muting.py           connections of clients over a quota
        connection_counts.py  connections of one address, or of one user
        connection_rate.py  how many connections are accepted in a second
        inbox.py            bytes received, cut into frames
        outbox.py           answers, in the order of their requests
        limits.py           limits on frames and connections
        request_limits.py   how many items a request may name
        router.py           frame -> handler -> answer
        purgatory.py        requests that wait for a condition or their deadline
        batch_validation.py where a producer's batches are validated: on the loop or beside it
        recompression.py    batches get their topic's codec
        digest_thread.py    digests of logs on a thread that lets the loop run
        worker_thread.py    long pieces of work, one at a time, beside the loop
"""
