"""The features of a cluster whose levels Kafka's clients and tools know.

Why:    ApiVersions tells clients what they may rely on, so a row stands here only if all of the
        feature is there. Clients change their behaviour by some of them: `transaction.version`,
        for one.
How:    a row: the levels that this release supports, and the level that it runs at. The level is
        part of the release; UpdateFeatures cannot change it. There are no rows: the levels of
        Kafka's own features describe parts of Kafka.
Source: KIP-584, KIP-1022."""

from typing import NamedTuple

FINALIZED_EPOCH = 0
"""Grows with each change of a level, which a running cluster never makes."""


class Feature(NamedTuple):
    """Levels `min_version` to `max_version` are supported; the cluster runs at `level`, 0: off."""

    name: str
    min_version: int
    max_version: int
    level: int


FEATURES: tuple[Feature, ...] = ()
"""All of them."""
