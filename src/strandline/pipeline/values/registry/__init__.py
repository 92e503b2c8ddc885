"""Schemas by their ids, from a registry that speaks Confluent's API.

Map:    client.py   asks the registry over HTTP, and remembers what it said
        framing.py  the bytes in front of a value that name its schema
Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html."""
