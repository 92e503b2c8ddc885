"""Quotas of clients: what they use of this broker, and when they are throttled.

Map:    client_quotas.py  the quotas of each client, and what is used of them
        mutations.py      changes of topics
        crossings.py      bytes that cross regions for a client
        address_rates.py  how many connections an address may open
        timed_steps.py    the loop's time that a handler takes
How:    A request is taken in, its bytes or the loop's time count, and its answer goes out at once.
        If its client is over a quota, the answer says for how long it throttles, and the connection
        is not read for so long.
Source: KIP-13, KIP-124, KIP-219; decision 0070."""
