"""Commands by which an operator gives up logs of partitions, and the answer; see `commands`.

Source: decisions 0027 and 0067."""

import msgspec

from strandline.model.cluster import BucketRange, Loss
from strandline.model.ids import BrokerId, GroupId


class ShownLog(msgspec.Struct, frozen=True, array_like=True):
    """The log of a surviving broker, as the operator saw it before giving up the others."""

    broker: BrokerId
    last_epoch: int
    last_index: int
    committed: int
    end: int


class DeclareLost(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """An operator gives up the replicas of a group on these brokers: let the others continue
    with what they have, by the grant after `grant`. `shown`: the logs of all these others."""

    group: GroupId
    grant: int
    brokers: tuple[BrokerId, ...]
    shown: tuple[ShownLog, ...] = ()
    by: str = ""
    at_ms: int = 0
    validate_only: bool = False


class RecoverPartition(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """An operator gives up all logs of a group, those of `brokers` and those `shown`, and continues
    with what buckets have: `history`. By the grant after `grant`."""

    group: GroupId
    grant: int
    brokers: tuple[BrokerId, ...]
    history: tuple[BucketRange, ...]
    shown: tuple[ShownLog, ...] = ()
    by: str = ""
    at_ms: int = 0
    validate_only: bool = False


class LossDeclared(msgspec.Struct, frozen=True, tag=True):
    """The replicas that the command gave up, or would give up; `logs`: of all survivors."""

    loss: Loss
    logs: tuple[ShownLog, ...]
    error_code: int = 0
