"""Legal topic names, and the internal topics.

Why:    a topic's name becomes part of a path, and clients may send any bytes.
Source: Kafka's `Topic.validate`; reliability reference 4."""

import re

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error

TOPIC_NAME_CHARACTERS_MAX = 249
OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Check a topic's name; raises ApiError INVALID_TOPIC_EXCEPTION."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = "'.' and '..' are not allowed"
    elif len(name) > TOPIC_NAME_CHARACTERS_MAX:
        reason = f"{len(name)} characters are more than {TOPIC_NAME_CHARACTERS_MAX}"
    elif not _LEGAL.fullmatch(name):
        reason = f"{name!a} has characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise ApiError(Error.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def collision_key(name: str) -> str | None:
    """What topics must not share: names that differ only in '.' and '_' are one name in metrics.
    None for a name without these characters, which cannot collide."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def is_internal(name: str) -> bool:
    """Whether only brokers write to this topic."""
    return name in INTERNAL_TOPICS
