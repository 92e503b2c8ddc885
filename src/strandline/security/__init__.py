"""Authentication of connections, authorisation of requests. Pure but for files of certificates and
users.

Map:    session.py       a principal, and the session of a connection
        tls.py           the TLS of one port, whose files may change
        peers.py         the TLS between brokers, whose certificates name them
        authority.py     an authority of one's own
        certificates.py  what a certificate says
        http_tokens.py   tokens of the HTTP port, in a file
        secret_file.py   files that their owner alone may use
        sasl/            logins: how a client authenticates
        audit/           who did what, as lines of a file
        doctor/          what is open
        acls/            rules: which principal may do what with which resource
        quotas/          how much of a broker a user or a client id may use
Source: docs/decisions/0069-access.md."""
