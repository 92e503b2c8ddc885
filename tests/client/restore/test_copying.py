"""What cannot come back by producing records again is refused before anything is made.

Source: decision 0066."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from strandline.base.errors import OperatorError
from strandline.client.restore.copying import carry_out
from strandline.client.restore.plan import PlannedPartition, PlannedTopic, RestorePlan

CLUSTER = {"log.cleanup.policy": "compact"}


class NoClient:
    """Whoever asks it anything has begun."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


def carried(configs: Mapping[str, str], cluster_configs: Mapping[str, str]) -> None:
    export: Any = object()
    partition = PlannedPartition(0, 0, 10, "file:///b", export)  # type: ignore[arg-type]
    topic = PlannedTopic("prices", UUID(int=1), configs, (partition,))
    number: Any = None
    plan = RestorePlan("lost", number, cluster_configs, (topic,), (), ())
    nothing: Any = NoClient()
    carry_out(nothing, nothing, {}, plan, changes={}, say=lambda _: None)


@pytest.mark.parametrize(
    ("configs", "cluster_configs"),
    [
        ({"cleanup.policy": "compact"}, {}),
        ({"cleanup.policy": "compact,delete"}, {}),
        ({}, CLUSTER),
    ],
)
def test_a_compacted_topic_needs_its_objects_copied(
    configs: Mapping[str, str], cluster_configs: Mapping[str, str]
) -> None:
    with pytest.raises(OperatorError, match="topic prices is compacted, so its offsets have gaps"):
        carried(configs, cluster_configs)


def test_any_other_topic_begins() -> None:
    with pytest.raises((LookupError, AttributeError)):
        carried({"cleanup.policy": "delete"}, CLUSTER)
