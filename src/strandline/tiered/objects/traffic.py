"""What one process asked of one bucket: what a bill of the store is made of.

Why:    stores charge for requests by kind, and for bytes that leave them.
How:    a retry that the library makes by itself is not counted; each part of a large object is, and
        so are the two requests around them. One request of deletion has up to 1,000 names.
Owns:   the counts, since the process began."""

from dataclasses import dataclass


@dataclass(slots=True)
class Traffic:
    """Requests that were sent, those that failed included; bytes of objects, both ways."""

    put_count: int = 0
    """Puts, creations, parts, and copies inside the store."""
    get_count: int = 0
    """Reads of objects, of ranges, and of sizes."""
    list_count: int = 0
    """Pages of listings."""
    delete_count: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
