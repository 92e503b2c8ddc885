"""The errors that clients get if the log did not accept a record: codes that they can act on.

Source: Kafka's `appendGroupMetadataErrorToResponseError` and its twin for offsets; reliability
        reference 1b ("error codes are part of safety")."""

from strandline.protocol.errors import Error

_SAME = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
}
_TOO_LARGE = (Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE, Error.INVALID_FETCH_SIZE)


def metadata_error(error: Error) -> Error:
    """For a group's metadata."""
    if error in _TOO_LARGE:
        return Error.UNKNOWN_SERVER_ERROR
    return _SAME.get(error, error)


def commit_error(error: Error) -> Error:
    """For committed offsets."""
    if error in _TOO_LARGE:
        return Error.INVALID_COMMIT_OFFSET_SIZE
    return _SAME.get(error, error)
