"""Our tables say what kio's classes say, field by field and version by version."""

import msgspec
import pytest
from tests.protocol.oracle import (
    BLOBS,
    MESSAGES,
    NEWER_THAN_THE_ORACLES,
    kafka_name,
    kio_class,
    kio_default,
    kio_fields,
    versions,
)

from strandline.protocol.codec import is_flexible
from strandline.protocol.table import Column, Message, columns

PAIRS = [
    (cls, version)
    for cls in MESSAGES + BLOBS
    for version in versions(cls)
    if (cls.__name__, version) not in NEWER_THAN_THE_ORACLES
]

WITHOUT_KAFKAS_DEFAULT = {("ListPartitionReassignmentsRequest", "topics")}
"""Null in Kafka's definition, as kafka-python has it; kio has none."""


@pytest.mark.parametrize(
    ("cls", "version"), PAIRS, ids=[f"{cls.__name__}-{version}" for cls, version in PAIRS]
)
def test_each_version_has_the_fields_that_kio_has(cls: type[Message], version: int) -> None:
    kio_cls = kio_class(cls, version)
    assert is_flexible(cls, version) == kio_cls.__flexible__
    if cls.API_KEY >= 0:
        assert kio_cls.__api_key__ == cls.API_KEY
    compare(cls, kio_cls, version)


def compare(cls: type[msgspec.Struct], kio_cls: type, version: int) -> None:
    """Compare two tables, and the tables of their structures."""
    assert kafka_name(cls) == kio_cls.__name__
    present = [column for column in columns(cls) if column.versions.has(version)]
    theirs = kio_fields(kio_cls)
    assert [column.name for column in present] == [field.name for field in theirs]
    for column, field in zip(present, theirs, strict=True):
        where = f"{cls.__name__}.{column.name} version {version}"
        assert column.wire == field.wire, where
        assert column.is_array == field.is_array, where
        assert column.tag == field.tag, where
        assert is_nullable(column, version) == field.is_nullable, where
        if (cls.__name__, column.name) not in WITHOUT_KAFKAS_DEFAULT:
            assert plain(column.default, version) == kio_default(field), where
        if field.element is not None:
            assert column.element is not None
            compare(column.element, field.element, version)


def is_nullable(column: Column, version: int) -> bool:
    """Records can always be null."""
    return column.wire == "records" or column.nullable.has(version)


def plain(default: object, version: int) -> object:
    """A structure as the tuple of its values in one version."""
    if isinstance(default, msgspec.Struct):
        return tuple(
            plain(getattr(default, column.name), version)
            for column in columns(type(default))
            if column.versions.has(version)
        )
    return default


def test_kio_has_no_version_that_is_missing_here() -> None:
    for cls in MESSAGES + BLOBS:
        first, last = versions(cls)[0], versions(cls)[-1]
        for version in (first - 1, last + 1):
            with pytest.raises(ModuleNotFoundError):
                kio_class(cls, version)
