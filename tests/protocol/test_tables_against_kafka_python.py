"""Our tables say what Kafka's definitions say, as kafka-python carries them.

A second witness: kio is generated from the same definitions; a fault there could be ours, too."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from tests.protocol.oracle import BLOBS, MESSAGES, NEWER_THAN_THE_ORACLES, kafka_name, versions

from strandline.protocol.table import NO_ID, Column, Message, VersionRange, columns

ZEROS = {"string": "", "bytes": b"", "uuid": NO_ID, "bool": False, "records": None}


def definition(name: str) -> dict[str, object]:
    """Kafka's definition of a message, without importing the client that carries it."""
    spec = find_spec("kafka")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "protocol" / "schemas" / "resources" / f"{name}.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))


NOT_CARRIED = ("UnregisterBroker", "DelegationToken")
"""Parts of the names of what that client has no use for; kio has them."""
CARRIED = [cls for cls in MESSAGES + BLOBS if not any(part in cls.__name__ for part in NOT_CARRIED)]


@pytest.mark.parametrize("cls", CARRIED, ids=lambda cls: cls.__name__)
def test_a_message_is_as_kafka_defines_it(cls: type[Message]) -> None:
    theirs = definition(cls.__name__)
    known = [n for n in versions(cls) if (cls.__name__, n) not in NEWER_THAN_THE_ORACLES]
    first, last = VersionRange.parse(str(theirs["validVersions"]))
    assert first <= known[0] and last == known[-1]  # It keeps old versions that Kafka dropped.
    assert theirs["flexibleVersions"] == cls.FLEXIBLE
    if cls.API_KEY >= 0:
        assert theirs["apiKey"] == cls.API_KEY
    apart = theirs.get("commonStructs", [])
    assert isinstance(apart, list)
    compare(cls, theirs["fields"], known, {one["name"]: one["fields"] for one in apart})


def compare(
    cls: type[msgspec.Struct], fields: object, known: list[int], common: dict[str, object]
) -> None:
    """Compare one structure in the `known` versions, then those inside it; `common`: the fields of
    those that are defined apart."""
    assert isinstance(fields, list)
    theirs = [field for field in fields if among(field["versions"], known)]
    ours = [column for column in columns(cls) if any(map(column.versions.has, known))]
    assert [column.name for column in ours] == [snake_case(field["name"]) for field in theirs]
    for column, field in zip(ours, theirs, strict=True):
        where = f"{cls.__name__}.{column.name}"
        kind = field["type"]
        assert column.is_array == kind.startswith("[]"), where
        kind = kind.removeprefix("[]")
        present = among(field["versions"], known)
        assert list(filter(column.versions.has, known)) == present, where
        nullable = among(field.get("nullableVersions", "none"), present)
        assert list(filter(column.nullable.has, present)) == nullable, where
        assert column.tag == field.get("tag"), where
        assert field.get("taggedVersions", field["versions"]) == field["versions"], where
        if kind[0].isupper():
            assert column.element is not None and kafka_name(column.element) == kind, where
            compare(column.element, field.get("fields", common.get(kind)), present, common)
        else:
            assert column.wire == kind, where
        check_default(column, field.get("default"), where)


def among(text: str, known: list[int]) -> list[int]:
    """Those of the `known` versions that a range names."""
    return list(filter(VersionRange.parse(text).has, known))


def snake_case(name: str) -> str:
    """Kafka's name as ours."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0], name).lower()


def check_default(column: Column, default: object, where: str) -> None:
    """Kafka writes defaults as text, and leaves out the zero of a type."""
    if default == "null":
        expected: object = None
    elif column.is_array:
        expected = ()
    elif column.wire == "struct":
        assert column.element is not None
        expected = column.element()
    elif default is None:
        expected = ZEROS.get(column.wire, 0)
    elif column.wire == "bool":
        expected = default in ("true", True)
    elif column.wire == "string":
        expected = default
    else:
        expected = int(str(default), 0)
    assert column.default == expected, where
