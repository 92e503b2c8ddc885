"""New cluster ids, in the form that Kafka's tools expect.

Why:    tools decode a cluster id as a UUID: 16 random bytes as 22 characters of URL-safe base64.
Source: Kafka's `Uuid.randomUuid`."""

import base64
from collections.abc import Callable

CLUSTER_ID_BYTES = 16


def new_cluster_id(random_bytes: Callable[[int], bytes]) -> str:
    """A random id; it has no leading dash, which a command line would take for an option."""
    while True:
        raw = random_bytes(CLUSTER_ID_BYTES)
        text = base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text
