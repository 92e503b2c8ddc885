"""An answer as {path: value}, without what differs from one run to the next.

Why:    two brokers never agree on ids, clocks and addresses. Everything else is compared.
How:    structures become paths (`topics[t].partitions[0].error_code`); the elements of a list are
        named by their key field, so that their order does not count. Random ids are numbered in
        the order in which a peer shows them. Clocks, addresses and texts count as set or unset.
        Record batches become their header fields, without leader epoch and checksum."""

from collections import Counter
from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec

from strandline.protocol.table import NO_ID
from strandline.records.batch import iterate_headers

KEYS = (
    "name",
    "topic",
    "group_id",
    "group",
    "member_id",
    "resource_name",
    "partition_index",
    "partition",
    "index",
    "node_id",
    "broker_id",
    "feature",
    "api_key",
    "key",
    "topic_name",
    "topic_id",
    "entity_type",
)
"""Fields that name an element of a list; the first one that is there and is set does."""
SET_OR_UNSET = frozenset(
    {
        "cluster_id",
        "error_message",
        "host",
        "log_append_time_ms",
        "log_dir",
        "port",
        "rack",
        "producer_id",
        "batch_index_error_message",
        "throttle_time_ms",
        "documentation",
        "total_bytes",
        "usable_bytes",
        "finalized_features_epoch",
        "session_id",
    }
)
"""Fields of which only that they have a value is compared."""
NUMBERED = frozenset({"member_id", "leader"})
"""Text fields with random values: numbered in the order of their first appearance."""
LEFT_OUT = frozenset({"leader_epoch", "partition_leader_epoch", "current_leader"})
"""Fields that depend on how many elections there were, and on random numbers."""
FIRST_PRODUCER = ("producer_id", 0)
"""A producer id that is one."""
UNSET = (None, "", -1, 0, NO_ID)

Flat = dict[str, object]


class Names:
    """Stands for random ids: the first one that a peer shows is `id-1`, and so on."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}

    def of(self, value: object) -> str:
        """The name of a value, the same each time."""
        return self._names.setdefault(value, f"id-{len(self._names) + 1}")


def flatten(message: msgspec.Struct, names: Names) -> Flat:
    """The answer as {path: value}."""
    return dict(_fields(message, "", names))


def _fields(message: msgspec.Struct, path: str, names: Names) -> Iterator[tuple[str, object]]:
    for field in message.__struct_fields__:
        if field not in LEFT_OUT:
            yield from _value(field, getattr(message, field), f"{path}{field}", names)


def _value(field: str, value: object, path: str, names: Names) -> Iterator[tuple[str, object]]:
    if isinstance(value, msgspec.Struct):
        yield from _fields(value, f"{path}.", names)
    elif isinstance(value, (list, tuple)):
        yield from _elements(field, value, path, names)
    elif field in SET_OR_UNSET:
        yield path, "unset" if value in UNSET and (field, value) != FIRST_PRODUCER else "set"
    elif isinstance(value, UUID):
        yield path, "unset" if value == NO_ID else names.of(value)
    elif field in NUMBERED and isinstance(value, str):
        yield path, names.of(value) if value else ""
    elif field == "records":
        yield path, batches_of(value)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        yield path, bytes(value).hex()
    else:
        yield path, value


def _elements(
    field: str, values: Sequence[object], path: str, names: Names
) -> Iterator[tuple[str, object]]:
    structs = [value for value in values if isinstance(value, msgspec.Struct)]
    if len(structs) != len(values):
        yield path, sorted(map(str, values))
        return
    yield f"{path}.count", len(structs)
    seen: Counter[object] = Counter()
    for place, struct in enumerate(structs):
        key = _key(struct, place, names)
        seen[key] += 1
        again = f" {seen[key]}" if seen[key] > 1 else ""
        yield from _fields(struct, f"{path}[{key}{again}].", names)


def _key(struct: msgspec.Struct, place: int, names: Names) -> object:
    entity = getattr(struct, "entity", None)
    if entity is not None:  # Whose quotas these are: types and names in any order.
        return ", ".join(sorted(f"{one.entity_type} {one.entity_name}" for one in entity))
    for key in KEYS:
        value = getattr(struct, key, None)
        if isinstance(value, UUID):
            if value != NO_ID:
                return names.of(value)
        elif value is not None and value != "" and not isinstance(value, msgspec.Struct):
            return names.of(value) if key in NUMBERED else value
    has_key = any(getattr(struct, key, None) == "" for key in KEYS)
    return "''" if has_key else place


def batches_of(records: object) -> list[str]:
    """Record batches as text: what a consumer sees of their headers."""
    if records is None or not isinstance(records, (bytes, bytearray, memoryview)):
        return []
    return [
        f"offset {header.base_offset}+{header.last_offset_delta} count {header.records_count}"
        f" attributes {header.attributes} sequence {header.base_sequence}"
        f" bytes {header.batch_length}"
        for header in iterate_headers(records)
    ]
