"""What `strandline restore` shows, and the buckets that it reads.

Source: decision 0063."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.config.bucket_urls import parse_url
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


def plan_json(plan: "RestorePlan") -> Json:
    """For programs."""
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
        "notes": [*plan.notes],
    }
