"""Chooses the replica that uploads to a bucket. Pure.

Why:    bytes that go to a bucket cross a region at most once: not at all if a replica is in the
        bucket's region.
How:    nearest first: replicas in the bucket's region, then those that share most of its other
        labels (a country, say), then the leader. Of equal ones the partition's number decides, so
        that many partitions spread over them.
Source: decisions 0057 and 0059."""

from collections.abc import Collection, Mapping

from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER, BrokerId


def choose_uploader(
    candidates: Mapping[BrokerId, Labels],
    bucket: Labels,
    *,
    leader: BrokerId,
    spread: int,
    avoided: Collection[BrokerId] = (),
) -> BrokerId:
    """The replica to upload; NO_BROKER if there is no candidate.

    `candidates`: {living replica that is in step: where it is}; `spread`: any number that differs
    between partitions; `avoided`: replicas that have just failed, taken only if all others have."""
    able = [one for one in candidates if one not in avoided] or list(candidates)
    if not able:
        return NO_BROKER
    distances = {one: _distance(candidates[one], bucket) for one in able}
    nearest = min(distances.values())
    best = sorted(one for one in able if distances[one] == nearest)
    if nearest[0] and leader in best:
        return leader  # Far from the bucket anyway: the leader is sure to have all of it.
    return best[spread % len(best)]


def _distance(broker: Labels, bucket: Labels) -> tuple[bool, int]:
    """(whether it is in another region, how many of the bucket's other labels it does not share):
    smaller is nearer."""
    is_elsewhere = broker.region != bucket.region or not bucket.region
    shared = sum(broker.get(name) == value for name, value in bucket.free)
    return is_elsewhere, -shared
