"""The fate of a partition by the number of voters left and the rules of its topic. Pure.

How:    Of N voters s are left, M is a majority, W the write quorum:

            s >= W                      the others elect a leader                        ELECTION
            M <= s < W                  acks=all waits for the lost voters               RETURN
            s = N - M + 1, half         the controller appoints the best log of them     ARBITRATION
                                        where voters may leave; else it may be let       LET_LEAVE
            the same, where voters may leave, and acks=all wants more than s:
                                        observers that are left make up the number       STANDS_IN
                                        they do not: only after                          LOWER
            the same                    where the controller has no majority either      RETURN
            N - W < s < N - M + 1       the same, where voters may leave: leaders promise W
                                        then (decision 0041), but not with write.caching
                                        else all acknowledged writes are on them, without
                                        a leader                                     RETURN
            0 < s <= N - W              no survivor may have the last of them            MAY_LACK
            s = 0                       no voter is left                                 GONE
Source: design section 6; decisions 0016, 0020, 0025, 0026 and 0041."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from strandline.placement.policy.document import Promotion
from strandline.placement.survival.course import Course
from strandline.placement.survival.regions import Regions
from strandline.placement.survival.replicas import Quorum, Replica

COUNTED: tuple[Promotion, ...] = ("under-min-isr", "under-replicated")
"""Promotions that depend only on the number of voters left."""
REGION_LOST: Promotion = "region-lost"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules beside the placement. `shrinks`: `voters.shrink.enable` of the topic;
    `controllers`: the controller's voters, empty if unknown; `promotion`: the policy's;
    `regions`: when they are down, never if unknown; `promises`: whether leaders promise a
    write quorum above a majority, if voters may leave."""

    min_insync_replicas: int = 1
    shrinks: bool = False
    controllers: Sequence[Replica] = ()
    promotion: Promotion = ""
    regions: Regions = field(default_factory=Regions)
    promises: bool = True

    def lacking(self, quorum: Quorum, left: int) -> int:
        """How many more voters acks=all requires."""
        asked = max(quorum.asked, min(self.min_insync_replicas, quorum.voters))
        return max(0, asked - left)


def elects(quorum: Quorum, left: int) -> bool:
    """Whether so many voters elect a leader, and acks=all goes on with it."""
    return quorum.voters - left < quorum.stops_at


def keeps_data(quorum: Quorum, left: int) -> bool:
    """Whether one of so many voters has any record that was acknowledged."""
    return left > quorum.voters - quorum.write_quorum


def course_of(
    quorum: Quorum, left: int, observers: int, rules: Rules, *, without_controller: bool
) -> Course:
    """What becomes of a partition. `left`: voters, `observers`: of those that may be promoted, so
    many are left."""
    if elects(quorum, left):
        return Course.ELECTION
    majority = quorum.voters // 2 + 1
    if left == 0:
        return Course.GONE
    if not keeps_data(quorum, left):
        return Course.MAY_LACK
    if without_controller:
        return Course.RETURN
    is_half = quorum.voters - majority < left < majority
    if not rules.shrinks:
        return Course.LET_LEAVE if is_half else Course.RETURN
    if left < majority and not is_half and not rules.promises:
        return Course.RETURN
    lacking = rules.lacking(quorum, left)
    if lacking:
        return Course.STANDS_IN if observers >= lacking else Course.LOWER
    return Course.ARBITRATION
