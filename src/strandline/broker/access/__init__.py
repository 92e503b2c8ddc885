"""Authorisation of requests, and rules in Kafka's messages.

Map:    requirements.py   what each request needs: a table
        authorisation.py  asks the rules of the controller's log
        config_rights.py  the right that a resource's configuration takes
        changes.py        what requests change, for the audit log: a table
        acl_messages.py   rules and filters in Kafka's messages
Source: decision 0069."""
