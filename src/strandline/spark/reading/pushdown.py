"""Lets a batch reader take filters whether or not a session has push-down enabled.

Why:    PySpark 4.2 refuses every query of a reader that overrides `pushFilters` while
        spark.sql.python.filterPushdown.enabled is false, which is its default. A reader cannot see
        the setting.
How:    PySpark compares `reader.pushFilters.__func__` with its own method, then calls
        `reader.pushFilters(filters)` if push-down is enabled. This descriptor gives it an object
        that shows PySpark's own method and calls the reader's.
Source: `plan_data_source_read.py` and `data_source_pushdown_filters.py` of PySpark 4.2."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from pyspark.sql.datasource import DataSourceReader, Filter


class TakesFilters(Protocol):
    """A reader that narrows what it reads."""

    def take_filters(self, filters: Sequence[Filter]) -> None:
        """Keep what the filters say. All of them hold; Spark applies each to the rows as well."""


class _Bound:
    """What `reader.pushFilters` is."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: TakesFilters) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reader.take_filters(filters)
        return filters


class OptionalPushDown:
    """As a class attribute named `pushFilters`; see the module."""

    def __get__(self, reader: TakesFilters, _owner: type | None = None) -> _Bound:
        return _Bound(reader)
