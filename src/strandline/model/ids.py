"""Ids, offsets, indexes and epochs, each a type of its own so that they cannot be mixed up.

Source: STYLE, "Names"; design section 4 for the relation of index and offset."""

from typing import NewType

BrokerId = NewType("BrokerId", int)
"""A broker's id, >= 0, for the life of its data directory."""

GroupId = NewType("GroupId", int)
"""A Raft group's id, never used twice. 0 is the controller; each partition has one."""

Epoch = NewType("Epoch", int)
"""Raft's term and Kafka's leader epoch: one number, from 1. 0 means "none yet".

It is (grant, n): the grant of the controller that the group lives by, 0 before any, and a number
that elections count up. Later grants are later epochs."""

Offset = NewType("Offset", int)
"""A Kafka offset: dense from 0, markers take none."""

Index = NewType("Index", int)
"""A Raft index: dense from 0 over records *and* markers. -1 stands for "before the first entry".

index = offset + number of markers before it."""

CONTROLLER_GROUP = GroupId(0)
NO_BROKER = BrokerId(-1)

_GRANT_SHIFT = 20
"""So many bits of an epoch are n: a million elections a grant, and 2,047 grants, in 31 bits."""
GRANT_MAX = (1 << 31 - _GRANT_SHIFT) - 1
"""The last grant of a group: the epochs of the next one do not fit into Kafka's 31 bits."""


def grant_of(epoch: Epoch) -> int:
    """Which of the controller's grants an epoch belongs to; 0 before any."""
    return epoch >> _GRANT_SHIFT


def first_epoch(grant: int) -> Epoch:
    """The epoch that a grant opens: its leader is appointed by the controller, not elected."""
    return Epoch(grant << _GRANT_SHIFT)
