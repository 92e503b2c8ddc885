"""What `strandline tiered` finds out, and the JSON of it.

Source: decision 0058."""

import os
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.cli.text.bucket_sums import bucket_sums
from strandline.client.cluster import Client
from strandline.client.operations.buckets import identify_bucket
from strandline.client.operations.tier import (
    TierStatus,
    known_objects,
    repair_object,
    tier_state,
    tier_status,
)
from strandline.config.load import load_broker_config
from strandline.protocol.messages.describe_tier import TierPartitionStatus
from strandline.tiered.collection.collect import Answer, Collected, UncertainError, collect
from strandline.tiered.collection.orphans import Place
from strandline.tiered.collection.verify import Verdict, verify_entry
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.claim import CLAIM, read_claim
from strandline.tiered.objects.identity import IDENTITY, read_identity
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry


class Fault(NamedTuple):
    """An object that is not sound."""

    bucket: str
    name: str
    verdict: str
    reason: str


@dataclass(slots=True)
class AwayBucket:
    """A bucket that gives no answer. `object_count`: those of its objects that were not read."""

    bucket: str
    reason: str
    object_count: int = 0


@dataclass(slots=True)
class Verified:
    """What `verify` found. `uncertain`: which logs do not say what they have, and why; `repaired`:
    faults of objects that were put again; `away`: {bucket: what is known of it}."""

    sound_count: int = 0
    read_bytes: int = 0
    faults: list[Fault] = field(default_factory=list)
    repaired: list[Fault] = field(default_factory=list)
    uncertain: list[str] = field(default_factory=list)
    away: dict[str, AwayBucket] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Whether all of it is there and whole."""
        return not self.faults and not self.uncertain and not self.away


def open_buckets(config: Path, bucket: str) -> dict[str, ObjectStore]:
    """{region: bucket} of a broker's file, or one of them; raises OperatorError."""
    try:
        text = config.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{config}: cannot read: {error}") from None
    section = load_broker_config(text, file=str(config), environment=os.environ).tiered
    buckets = Buckets.of(section)
    if not buckets.names:
        raise OperatorError(f"{config}: [tiered] buckets names no bucket")
    if bucket and bucket not in buckets.names:
        raise OperatorError(
            f"--bucket {bucket}: [tiered] buckets of {config} has {', '.join(buckets.names)}"
        )
    return {name: buckets.store(name) for name in buckets.names if bucket in ("", name)}


async def verify_buckets(
    client: Client,
    buckets: dict[str, ObjectStore],
    topics: Sequence[str],
    *,
    repairs: bool = False,
) -> Verified:
    """Read all live objects of these buckets, partition by partition; with `repairs`, have those
    put again that are missing or damaged. Raises OperatorError if one is not the bucket of its
    name."""
    found = Verified()
    for name, one in buckets.items():
        if reason := await _require_identity(client, name, one):
            found.away[name] = AwayBucket(name, reason)
    status = tier_status(client, topics)
    found.uncertain += status.missing
    for row in status.partitions:
        place = Place(row.topic_id, row.partition)
        try:
            state = tier_state(client, place)
        except UncertainError as error:
            found.uncertain.append(f"{row.topic}-{row.partition}: {error}")
            continue
        for image in () if state is None else state.buckets:
            store = buckets.get(image.bucket)
            for entry in () if store is None else image.live:
                assert store is not None
                fault = await _verify_one(store, image.bucket, entry, found)
                if fault is None:
                    continue
                if repairs and fault.verdict != Verdict.UNREADABLE.value:
                    _repair(client, place, fault, found)
                else:
                    found.faults.append(fault)
    return found


async def _verify_one(
    store: ObjectStore, bucket: str, entry: SegmentEntry, found: Verified
) -> Fault | None:
    """Read one object, and note what came of it; returns what is wrong with it alone. If the store
    gives no answer, this looks for the bucket's identity: a bucket that is away is one finding."""
    if bucket in found.away:
        found.away[bucket].object_count += 1
        return None
    checked = await verify_entry(store, entry)
    found.read_bytes += checked.read_bytes
    if checked.verdict is Verdict.SOUND:
        found.sound_count += 1
        return None
    if checked.verdict is Verdict.UNREADABLE:
        _, reason = await _identity(store)
        if reason:
            found.away[bucket] = AwayBucket(bucket, reason, 1)
            return None
    return Fault(bucket, entry.name, checked.verdict.value, checked.reason)


def _repair(client: Client, place: Place, fault: Fault, found: Verified) -> None:
    try:
        done = repair_object(client, place, fault.bucket, fault.name)
    except UncertainError as error:
        found.faults.append(fault._replace(reason=f"{fault.reason}; not put again: {error}"))
        return
    if done.verdict == Verdict.SOUND.value:
        found.repaired.append(fault)
    else:
        found.faults.append(fault._replace(reason=f"not put again: {done.reason}"))


async def collect_buckets(
    client: Client,
    buckets: dict[str, ObjectStore],
    *,
    now_ms: int,
    grace_ms: int,
    deletes: bool,
    deleted: Collection[UUID] = (),
) -> dict[str, Collected]:
    """{bucket: what it holds of this cluster}; raises OperatorError if it is another cluster's, or
    not the bucket of its name. `deleted`: see `known_objects`."""
    cluster_id = client.metadata().cluster_id
    found = {}
    for bucket, store in buckets.items():
        try:
            owner = await read_claim(store)
        except ObjectAbsentError:
            raise OperatorError(
                f"bucket {bucket} has no {CLAIM}: no cluster uses it; check [tiered] buckets, or "
                "judge another one: --bucket REGION"
            ) from None
        except StoreError as error:
            raise OperatorError(f"{error}; to judge another bucket: --bucket REGION") from None
        if owner != cluster_id:
            raise OperatorError(f"bucket {bucket} belongs to cluster {owner}, not to {cluster_id}")
        await _require_identity(client, bucket, store)

        async def ask(place: Place, bucket: str = bucket) -> Answer:
            return known_objects(client, place, bucket, cluster_id=cluster_id, deleted=deleted)

        found[bucket] = await collect(
            store,
            cluster_id=cluster_id,
            ask_leader=ask,
            now_ms=now_ms,
            grace_ms=grace_ms,
            deletes=deletes,
        )
    return found


async def _require_identity(client: Client, bucket: str, store: ObjectStore) -> str:
    """Refuse a bucket that is not the one that the cluster uses by this name. One that gives no
    answer is no other one: returns why it gives none, or nothing."""
    known = identify_bucket(client, bucket)
    found, why_silent = await _identity(store)
    if not known.bucket_id or why_silent:
        return why_silent
    if found != known.bucket_id:
        raise OperatorError(
            f"bucket {bucket} is not the one that the cluster uses by this name: its {IDENTITY} "
            f"says {found or 'nothing'}, and the cluster {known.bucket_id}; compare [tiered] "
            "buckets with the brokers' files, or judge another one: --bucket REGION"
        )
    return ""


async def _identity(store: ObjectStore) -> tuple[str, str]:
    """A bucket's id, if it has one; and why it gives no answer, if it gives none."""
    try:
        return await read_identity(store), ""
    except ObjectAbsentError:
        return "", ""
    except StoreError as error:
        return "", str(error)


def status_json(found: TierStatus) -> Json:
    """All partitions, and the sums of each bucket."""
    return {
        "partitions": [_partition_json(one) for one in found.partitions],
        "buckets": [one.json for one in bucket_sums(found)],
        "not_known": list(found.missing),
    }


def _partition_json(one: TierPartitionStatus) -> Json:
    return {
        "topic": one.topic,
        "topic_id": str(one.topic_id),
        "partition": one.partition,
        "leader_epoch": one.leader_epoch,
        "log_start_offset": one.log_start_offset,
        "local_start_offset": one.local_start_offset,
        "high_watermark": one.high_watermark,
        "buckets": [
            {
                "bucket": each.bucket,
                "wanted": each.is_wanted,
                "start_offset": each.start_offset,
                "end_offset": each.end_offset,
                "objects": each.object_count,
                "bytes": each.size_bytes,
                "pending_bytes": each.pending_bytes,
                "pending_since_ms": each.pending_since_ms if each.pending_since_ms >= 0 else None,
                "uploads": each.upload_count,
                "retired": each.removal_count,
                "retired_bytes": each.removal_bytes,
            }
            for each in one.buckets
        ],
    }


def verified_json(found: Verified) -> Json:
    """What `verify` found."""
    return {
        "sound": found.sound_count,
        "read_bytes": found.read_bytes,
        "faults": [one._asdict() for one in found.faults],
        "repaired": [one._asdict() for one in found.repaired],
        "not_known": list(found.uncertain),
        "away": [asdict(one) for one in found.away.values()],
    }


def collected_json(found: dict[str, Collected]) -> Json:
    """What `gc` found and did."""
    return {
        "buckets": [
            {
                "bucket": bucket,
                "known": len(one.sorted.known),
                "young": len(one.sorted.young),
                "exported": [each.name for each in one.sorted.exported],
                "orphans": [each.name for each in one.sorted.orphans],
                "orphan_bytes": sum(each.size_bytes for each in one.sorted.orphans),
                "deleted": one.deleted_count,
                "uncertain": [
                    {
                        "topic_id": str(place.topic_id),
                        "partition": place.partition,
                        "reason": reason,
                    }
                    for place, reason in one.uncertain
                ],
            }
            for bucket, one in found.items()
        ]
    }
