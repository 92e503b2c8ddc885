"""What both ways of a restore share: configurations with changes, and committed offsets.

Source: decision 0063."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from strandline.base.errors import OperatorError
from strandline.client.admin import find_coordinator
from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.client.restore.plan import PlannedOffset, RestorePlan
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Say = Callable[[str], None]


def require_other_cluster(client: Client, plan: RestorePlan) -> None:
    """Raises OperatorError if the buckets are of the cluster that the client talks to."""
    present = client.metadata(deadline_ms=client.deadline()).cluster_id
    if present == plan.cluster_id:
        raise OperatorError(
            f"cluster {present} is the one whose buckets these are, and it is there: restore into "
            "another one"
        )


def changed_configs(
    configs: Mapping[str, str], changes: Mapping[str, str | None]
) -> dict[str, str]:
    """A topic's configuration with other values, or without some keys (None)."""
    changed = {**configs, **changes}
    return {key: value for key, value in changed.items() if value is not None}


def commit_offsets(client: Client, plan: RestorePlan, say: Say) -> None:
    """Commit the offsets of all groups; `say` gets a line for each."""
    ordered = sorted(plan.offsets, key=lambda one: (one.group, one.topic, one.partition))
    for group, some in groupby(ordered, key=lambda one: one.group):
        offsets = list(some)
        _commit(client, group, offsets)
        say(f"group {group}: {len(offsets)} committed offsets")


def _commit(client: Client, group: str, offsets: Sequence[PlannedOffset]) -> None:
    """Commit a group's offsets. Epochs are of the lost cluster, so that none is given."""
    topics = {name: list(some) for name, some in groupby(offsets, key=lambda one: one.topic)}
    ids: Mapping[str, object] = {name: client.topic(name).id for name in topics}
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=ids[name],  # type: ignore[arg-type]
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=one.partition,
                        committed_offset=one.restored,
                        committed_metadata=one.metadata,
                    )
                    for one in some
                ],
            )
            for name, some in topics.items()
        ],
    )

    def commit(until: int) -> None:
        coordinator = find_coordinator(client, group, until)
        answer = client.ask(coordinator, request, OffsetCommitResponse, deadline_ms=until)
        for one in (part for topic in answer.topics for part in topic.partitions):
            if one.error_code:
                raise refusal(one.error_code, f"the offsets of group {group}")

    client.attempt(commit)
