"""What brokers report about themselves when the controller asks: room, logs, lagging replicas, and
which brokers they hear. Pure.

Why:    some decisions rest on what is in no log and changes all the time: whether what leaves a
        broker fits elsewhere, and whether the brokers that are up are in sync, too.
How:    the controller asks with the commands that need it, and the balancer asks now and then; a
        broker that does not answer in time has reported nothing.
Owns:   nothing.
Source: decisions 0010 and 0011."""

from collections.abc import Mapping

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, GroupId


class Question(msgspec.Struct, frozen=True, array_like=True):
    """What to report besides the room on the disk: the sizes of logs; replicas in sync; brokers
    heard; partitions that refuse acks=all, or have no known leader; where the logs of these
    groups end."""

    sizes: bool = False
    leads: bool = False
    hears: bool = False
    refuses: bool = False
    logs: tuple[GroupId, ...] = ()


class LogReport(msgspec.Struct, frozen=True, array_like=True):
    """The replica of a group there, as `survivors.SurvivingLog` has it. `leader`: the leader
    that it knows; NO_BROKER for none."""

    is_led: bool
    epoch: int
    last_epoch: int
    last_index: int
    start: int
    committed: int
    end: int
    has_lost: bool
    leader: BrokerId = NO_BROKER


class Report(msgspec.Struct, frozen=True, array_like=True):
    """What one broker tells. `sizes`: {group: bytes of its log there}; `behind`: {group that it
    leads: its voters that are not in sync}; `hears`: the brokers that it hears, itself included;
    None where that was not asked, or is not known to its version; `refusing`: groups that it leads
    and takes no acks=all for, as too few vote or make up the write quorum; `logs`: {group that was
    asked about, and is open there: its log}; `leaderless`: groups of which it has a replica that
    knows no leader that lives, or does not work."""

    used_bytes: int
    free_bytes: int
    sizes: dict[GroupId, int] = {}
    behind: dict[GroupId, tuple[BrokerId, ...]] = {}
    hears: tuple[BrokerId, ...] | None = None
    refusing: tuple[GroupId, ...] = ()
    logs: dict[GroupId, LogReport] = {}
    leaderless: tuple[GroupId, ...] = ()

    @property
    def used_percent(self) -> int:
        """How full the disk is; rounded down."""
        return 100 * self.used_bytes // max(1, self.used_bytes + self.free_bytes)

    def room_bytes(self, percent: int) -> int:
        """How much more there may be until the disk is so full; negative where it is fuller."""
        return (self.used_bytes + self.free_bytes) * percent // 100 - self.used_bytes


Reports = Mapping[BrokerId, Report]
