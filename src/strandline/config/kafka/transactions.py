"""Kafka's broker keys of transactions and delegation tokens.

Why:    tools read them to find out what transactions may do.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import BOOLEAN, INT, LONG, PASSWORD, SHORT, fixed, stored
from strandline.config.keys import Key

_NO_TOKENS = "Strandline has no delegation tokens."
_NO_TXN = "Strandline has no transactions yet."

TRANSACTION_STORED: tuple[Key, ...] = (
    stored(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a leader asks the coordinator before it takes a transaction's first batch. "
        f"{_NO_TXN}",
    ),
)

TRANSACTION_FIXED: tuple[Key, ...] = (
    fixed(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "The longest time that Kafka retries to add partitions to a transaction within a "
        f"request. {_NO_TXN}",
    ),
    fixed(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        f"The pause between such retries. {_NO_TXN}",
    ),
    fixed(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3_600_000,
        f"How often delegation tokens that have expired are removed. {_NO_TOKENS}",
    ),
    fixed(
        "delegation.token.expiry.time.ms",
        LONG,
        86_400_000,
        f"How long a delegation token is valid before it must be renewed. {_NO_TOKENS}",
    ),
    fixed(
        "delegation.token.max.lifetime.ms",
        LONG,
        604_800_000,
        f"How long a delegation token can be renewed at most. {_NO_TOKENS}",
    ),
    fixed(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        f"The key with which delegation tokens are signed. {_NO_TOKENS}",
    ),
    fixed(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        f"How often transactions that have timed out are aborted. {_NO_TXN}",
    ),
    fixed(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        f"The longest time-out that a transaction may have. {_NO_TXN}",
    ),
    fixed(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        f"How often transactional ids that have expired are removed. {_NO_TXN}",
    ),
    fixed(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        f"How much of the transactions' log a coordinator reads at a time. {_NO_TXN}",
    ),
    fixed(
        "transaction.state.log.min.isr",
        INT,
        2,
        f"The least replicas in sync of the transactions' log. {_NO_TXN}",
    ),
    fixed(
        "transaction.state.log.num.partitions",
        INT,
        50,
        f"Partitions of the transactions' log. {_NO_TXN}",
    ),
    fixed(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        f"Replicas of the transactions' log. {_NO_TXN}",
    ),
    fixed(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        f"The size at which a segment of the transactions' log is closed. {_NO_TXN}",
    ),
    fixed(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        f"Whether clients may hold transactions open for a commit in two phases. {_NO_TXN}",
    ),
    fixed(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        f"How long an unused transactional id is kept. {_NO_TXN}",
    ),
)
