"""The answer to a produce request about one partition: refused, and why.

Source: KIP-467 (records to blame)."""

from strandline.base.errors import ApiError, RefusedRecordsError
from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
)
from strandline.records.validate import MalformedProduceError
from strandline.replication.replica.replica import Replica

NO_OFFSET = -1
NO_TIMESTAMP = -1
SEQUENCE_ERRORS = frozenset(
    {
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Error.INVALID_PRODUCER_EPOCH,
        Error.UNKNOWN_PRODUCER_ID,
    }
)
WITHOUT_LOG_START = frozenset({Error.CORRUPT_MESSAGE, Error.MESSAGE_TOO_LARGE})
"""Refusals of batches that tell the producer nothing of the log, as in Kafka."""


def refuse(result: PartitionProduceResponse, refusal: ApiError, replica: Replica) -> None:
    """Refuse a partition's batches; if single records are to blame, name them."""
    fail(result, refusal.code, refusal.message)
    if refusal.code not in WITHOUT_LOG_START and not isinstance(refusal, MalformedProduceError):
        result.log_start_offset = replica.log_start_offset
    if isinstance(refusal, RefusedRecordsError):
        result.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=reason)
            for index, reason in refusal.record_errors
        ]


def fail(result: PartitionProduceResponse, code: int, message: str = "") -> None:
    """Refuse a partition's batches: no offset, no time."""
    result.error_code = code
    result.base_offset = NO_OFFSET
    result.log_append_time_ms = NO_TIMESTAMP
    result.log_start_offset = NO_OFFSET
    result.error_message = message or None
