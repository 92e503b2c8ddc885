"""An answer as one line: which names it shows, the error of each, and what else it tells.

How:    `orders/0 NONE records; hidden/0 TOPIC_AUTHORIZATION_FAILED`: a path of names, then words.
        Parts are sorted. Numbers count as set or unset, for two brokers differ in them."""

from collections.abc import Iterator, Mapping
from uuid import UUID

import msgspec

from strandline.model.access import Kind, Operation
from strandline.protocol.errors import name_of
from strandline.protocol.table import NO_ID
from strandline.security.acls.included import OPERATIONS_OF

KEYS = (
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "group_id",
    "key",
    "resource_name",
    "user",
    "feature",
    "partition_index",
    "partition",
    "partition_id",
    "index",
)
"""Fields that name a part of an answer; the first one that is set does."""
TOLD = ("committed_offset", "high_watermark", "end_offset", "offset", "records", "configs")
"""Fields that a client without the right must not get; only that they are set counts."""
LEFT_OUT = frozenset(
    {
        "brokers",
        "nodes",
        "node_endpoints",
        "current_voters",
        "observers",
        "members",
        "configs",
        "replica_nodes",
        "isr_nodes",
        "api_keys",
        "supported_features",
        "finalized_features",
    }
)
"""Lists that are the same for every client that gets the part around them."""
NOT_ASKED = -(2**31)
INTERNAL = "__"
"""How the names of topics begin that only one of two brokers has."""


def summarise(answer: msgspec.Struct | None, names: Mapping[UUID, str]) -> str:
    """The line. `names`: {id of a topic: its name}."""
    if answer is None:
        return "hangs up"
    parts = {" ".join((path, *words)).strip() for path, words in _parts(answer, "", names)}
    return "; ".join(sorted(parts)) or "empty"


def _parts(
    struct: msgspec.Struct, path: str, names: Mapping[UUID, str]
) -> Iterator[tuple[str, list[str]]]:
    own = _name(struct, names)
    if own.startswith(INTERNAL):
        return
    path = f"{path}/{own}".strip("/")
    words, inner = _words(struct), list(_inner(struct))
    if words:
        yield path, words
    elif not inner and own:
        yield path, ["shown"]
    for one in inner:
        yield from _parts(one, path, names)


def _inner(struct: msgspec.Struct) -> Iterator[msgspec.Struct]:
    for field in struct.__struct_fields__:
        value = getattr(struct, field)
        if field not in LEFT_OUT and isinstance(value, list):
            yield from (one for one in value if isinstance(one, msgspec.Struct))


def _words(struct: msgspec.Struct) -> list[str]:
    words: list[str] = []
    has_name = bool(getattr(struct, "name", None) or getattr(struct, "topic", None))
    for field in struct.__struct_fields__:
        value = getattr(struct, field)
        if field == "error_code":
            words.insert(0, name_of(value))
        elif field.endswith("authorized_operations"):
            if value != NOT_ASKED:
                words.append(f"may {_operations(field, value)}")
        elif field == "topic_id":
            if value != NO_ID and has_name and "error_code" in struct.__struct_fields__:
                words.append("id")
        elif field in TOLD and value is not None and not isinstance(value, str):
            is_told = value > 0 if isinstance(value, int) else len(value) > 0
            if is_told:
                words.append(field)
    return words


def _operations(field: str, bits: int) -> str:
    """The operations of a bit field, in words. `field`: its name, from which its kind follows."""
    kind = next(
        (one for one in (Kind.TOPIC, Kind.CLUSTER) if one.name.lower() in field), Kind.GROUP
    )
    known = OPERATIONS_OF[kind]
    found = [one.name for one in Operation if bits >> one & 1]
    if bits == sum(1 << one for one in known):
        return "all"
    return "+".join(found) or "nothing"


def _name(struct: msgspec.Struct, names: Mapping[UUID, str]) -> str:
    for key in KEYS:
        value = getattr(struct, key, None)
        if isinstance(value, UUID):
            if value != NO_ID:
                return names.get(value, "an id")
        elif isinstance(value, int | str) and value not in ("", -1):
            return str(value)
    return ""
