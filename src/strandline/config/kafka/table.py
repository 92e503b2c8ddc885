"""All of Kafka's broker keys that are no settings of a cluster here, by name.

Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.from_file import FILE_KEYS
from strandline.config.kafka.groups import GROUP_FIXED, GROUP_STORED
from strandline.config.kafka.logs import LOG_FIXED, LOG_STORED
from strandline.config.kafka.replication import REPLICATION_FIXED, REPLICATION_STORED
from strandline.config.kafka.security import SECURITY_FIXED
from strandline.config.kafka.share_groups import SHARE_GROUP_FIXED, SHARE_GROUP_STORED
from strandline.config.kafka.threads import THREAD_FIXED, THREAD_STORED
from strandline.config.kafka.tiering import TIERING_FIXED, TIERING_STORED
from strandline.config.kafka.transactions import TRANSACTION_FIXED, TRANSACTION_STORED
from strandline.config.keys import Key


def _sorted(*tables: tuple[Key, ...]) -> tuple[Key, ...]:
    rows = [row for table in tables for row in table]
    return tuple(sorted(rows, key=lambda row: row.name))


STORED_KEYS: tuple[Key, ...] = _sorted(
    GROUP_STORED,
    LOG_STORED,
    REPLICATION_STORED,
    SHARE_GROUP_STORED,
    THREAD_STORED,
    TIERING_STORED,
    TRANSACTION_STORED,
)
"""Keys that can be set, on the broker default and on a single broker, and change nothing."""

FIXED_KEYS: tuple[Key, ...] = _sorted(
    tuple(one.key for one in FILE_KEYS),
    GROUP_FIXED,
    LOG_FIXED,
    REPLICATION_FIXED,
    SECURITY_FIXED,
    SHARE_GROUP_FIXED,
    THREAD_FIXED,
    TIERING_FIXED,
    TRANSACTION_FIXED,
)
"""Keys that cannot be changed at run time."""

FIXED_KEYS_BY_NAME: dict[str, Key] = {row.name: row for row in FIXED_KEYS}


def why_fixed(name: str) -> str | None:
    """Why a key cannot be set here, in one line; None for a name that is not fixed."""
    row = FIXED_KEYS_BY_NAME.get(name)
    return None if row is None else f"{name} cannot be changed at run time. {row.doc}"
