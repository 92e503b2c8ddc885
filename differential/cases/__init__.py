"""The cases: what is asked, by subject. Importing this package fills `CASES`.

Map:    registry.py   the decorator, and requests that many cases need
        topics.py     creating, deleting, growing, metadata
        produce.py    batches good and bad, sequences
        compressed.py batches whose contents are compressed, good and bad
        reading.py    Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords
        sessions.py   fetch sessions
        groups.py     the classic groups and their offsets
        members.py    members of groups: versions, static ones, a rebalance of two
        ids.py        topics by their ids
        transactions.py transactional requests
        configs.py    DescribeConfigs and its two ways to alter
        cluster.py    what admin tools ask of a cluster
        tools.py      rules, tokens, quotas, features and others
        frames.py     requests that no table can write"""

from differential.cases import (
    cluster,
    compressed,
    configs,
    frames,
    groups,
    ids,
    members,
    produce,
    reading,
    sessions,
    tools,
    topics,
    transactions,
)
from differential.cases.registry import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "cluster",
    "compressed",
    "configs",
    "frames",
    "groups",
    "ids",
    "members",
    "produce",
    "reading",
    "sessions",
    "tools",
    "topics",
    "transactions",
]
