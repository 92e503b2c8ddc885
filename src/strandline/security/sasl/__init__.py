"""Authentication of clients: mechanisms of SASL, as state machines without a socket.

Map:    mechanism.py  the interface of a mechanism, and its error
        scram.py      SCRAM-SHA-256 and SCRAM-SHA-512
        plain.py      PLAIN: a name and a password
        oauth_bearer.py  OAUTHBEARER: a token that an identity provider has signed
        tokens.py     what a token must say
        token_keys.py the keys that tokens are signed with
        users_file.py users before the controller knows any
        iterations.py how often a password is hashed
        secrets.py    the secrets of users, and made-up ones of unknown users
Source: RFC 4422; KIP-43, KIP-84, KIP-152; decision 0069."""
