"""A broker with TLS, logins and rules, and clients that mean it harm, over its ports.

Why:    what reads bytes in this process (`fuzz.targets`) leaves out sockets, TLS, time, and what a
        connection may do after what.
Map:    cluster.py    the broker, what it keeps secret, and what must be the same afterwards
        world.py      what every attack is given, and the look at each answer
        wire.py       connections and frames by hand
        strangers.py  attacks without a login
        logins.py     attacks that log in, or seem to
        tokens.py     the same with tokens of an identity provider
        http_port.py  attacks on the HTTP port
        provider.py   that identity provider
        members.py    attacks by a user that has logged in and has no right
        watchdog.py   a client with every right, whose requests must all be answered
        target.py     rounds of attacks, and what has to hold afterwards
"""
