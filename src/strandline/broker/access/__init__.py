"""Authentication and authorisation of clients, and rules in Kafka's messages.

Map:    authorisation.py  asks the rules of the controller's log
        requirements.py   what each request needs: a table
        changes.py        what requests change, for the audit log: a table
        logins.py         logins by SASL
        failure_delays.py what a failed login costs
        token_verifier.py verifies tokens of an identity provider
        token_keys.py     keeps the keys that tokens are verified with
        config_rights.py  the right that a resource's configuration takes
        acl_messages.py   rules and filters in Kafka's messages
Source: decision 0069."""
