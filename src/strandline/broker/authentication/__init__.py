"""Authentication of clients: what a broker adds to the mechanisms of `security/sasl`.

Map:    logins.py          logins by SASL, with the secrets of the cluster
        failure_delays.py  how long the answer to a failed login waits
        token_verifier.py  verifies tokens of an identity provider
        key_set_refresh.py keeps the keys that tokens are verified with up to date
Source: decision 0069."""
