"""Connections to brokers.

Map:    transport.py     the seam: sockets and time
        connection.py    one broker: versions, requests and answers in order
        login.py         a client's login by a password
        token_login.py   a client's login by a token
        access_token.py  where a client's tokens come from
        foreign.py       who else answered: HTTP, TLS
        side_by_side.py  asks many brokers at the same time
"""
