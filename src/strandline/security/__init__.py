"""Who a connection is, and what it may do. Pure but for the files of certificates.

Map:    session.py  a principal, and the session of a connection
        acls/       rules: which principal may do what with which resource
Source: docs/decisions/0069-access.md."""
