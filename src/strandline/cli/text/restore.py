"""What `strandline restore` shows, and the buckets that it reads.

Source: decision 0063."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.client.restore.objects import Targets, way_of
from strandline.client.restore.offsets import changed_configs
from strandline.config.bucket_urls import parse_url
from strandline.config.load import load_broker_config
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectStore

if TYPE_CHECKING:
    from strandline.client.restore.plan import RestorePlan

CREDENTIALS_TABLE = "restore"


def open_sources(urls: Sequence[str], credentials: Path | None) -> dict[str, ObjectStore]:
    """{URL without options: its store}. Raises OperatorError."""
    file = CredentialsFile(str(credentials) if credentials else "")
    stores: dict[str, ObjectStore] = {}
    for text in urls:
        try:
            url = parse_url(text, name=CREDENTIALS_TABLE)
        except ValueError as error:
            raise OperatorError(f"--from {text}: {error}") from None
        stores[str(url)] = open_store(url, credentials=file)
    return stores


def open_targets(file: Path) -> Targets:
    """The buckets of the cluster that gets the topics, by a broker's file. Raises OperatorError."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"--to {file}: cannot read: {error}") from None
    section = load_broker_config(text, file=str(file), environment=os.environ).tiered
    buckets = Buckets.of(section)
    if not buckets.names:
        raise OperatorError(
            f"--to {file}: [tiered] buckets names no bucket: without tiered storage in this "
            "cluster, restore with --records, which produces every record again"
        )
    stores = {name: buckets.store(name) for name in buckets.names}
    return Targets(stores, section.labels_of_buckets)


def ways(
    plan: "RestorePlan",
    stores: Mapping[str, ObjectStore],
    targets: Targets | None,
    changes: Mapping[str, str | None],
) -> Mapping[tuple[str, int], str]:
    """{(topic, partition): how its records would come}, if it has any."""
    found = {}
    for lost in plan.topics:
        topic = replace(lost, configs=changed_configs(lost.configs, changes))
        for one in topic.partitions:
            if one.objects:
                way = "records" if targets is None else way_of(topic, one, stores, targets)
                found[topic.name, one.index] = way
    return found


def plan_json(plan: "RestorePlan", ways: Mapping[tuple[str, int], str]) -> Json:
    """For programs. `ways`: see the function; empty if that was not said."""
    return {
        "cluster_id": plan.cluster_id,
        "controller_ms": plan.taken.written_ms,
        "cluster_configs": dict(plan.cluster_configs),
        "topics": [
            {
                "name": topic.name,
                "configs": dict(topic.configs),
                "partitions": [
                    {
                        "index": one.index,
                        "start_offset": one.start,
                        "end_offset": one.end,
                        "missing_count": one.missing_count,
                        "lost_before": one.lost_before,
                        "gone": [[start, end] for start, end in one.gone],
                        "oldest_ms": one.oldest_ms if one.oldest_ms >= 0 else None,
                        "written_ms": None if one.export is None else one.export.written_ms,
                        "bucket": one.bucket,
                        "size_bytes": one.size_bytes,
                        "way": ways.get((topic.name, one.index)),
                    }
                    for one in topic.partitions
                ],
            }
            for topic in plan.topics
        ],
        "offsets": [
            {
                "group": one.group,
                "topic": one.topic,
                "partition": one.partition,
                "committed": one.committed,
                "restored": one.restored,
            }
            for one in plan.offsets
        ],
        "rules": len(plan.rules),
        "users": [*plan.users],
        "quotas": sum(len(values) for values in plan.quotas.values()),
        "notes": [*plan.notes],
    }
