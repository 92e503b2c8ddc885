"""Kafka's error codes: the one table that broker, client and documentation read.

Why:    clients act on the code alone, so every part must agree on which codes are retriable.
How:    `Error.NOT_LEADER_OR_FOLLOWER` is an int (6), with `.retriable` and `.message`. Raise
        `ApiError(Error.X, "what exactly")` to refuse; `message_of(code)` for a code off the wire.
Source: Kafka 4.4 `Errors`; numbers, names and retriable flags are Kafka's, sentences are ours."""

from enum import IntEnum


class Error(IntEnum):
    """An error code. `retriable`: the same request may succeed later, perhaps elsewhere."""

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> "Error":  # noqa: FBT001 (the enum passes a row by place)
        """Make one row; the enum's value is the code."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "The broker failed in a way it did not expect."
    NONE = 0, False, "No error."
    OFFSET_OUT_OF_RANGE = 1, False, "The offset is outside the log."
    CORRUPT_MESSAGE = 2, True, "A batch is damaged, or has no key on a compacted topic."
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "There is no such topic or partition here."
    INVALID_FETCH_SIZE = 4, False, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, True, "An election is going on; there is no leader yet."
    NOT_LEADER_OR_FOLLOWER = 6, True, "This broker does not lead the partition or has no replica."
    REQUEST_TIMED_OUT = 7, True, "Time ran out before the request was done."
    BROKER_NOT_AVAILABLE = 8, False, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, True, "The replica cannot serve this now."
    MESSAGE_TOO_LARGE = 10, False, "A batch is larger than max.message.bytes."
    STALE_CONTROLLER_EPOCH = 11, False, "The controller has moved on."
    OFFSET_METADATA_TOO_LARGE = 12, False, "The metadata beside a committed offset is too long."
    NETWORK_EXCEPTION = 13, True, "The connection broke before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still reading its log."
    COORDINATOR_NOT_AVAILABLE = 15, True, "The coordinator is not available."
    NOT_COORDINATOR = 16, True, "Another broker coordinates this."
    INVALID_TOPIC_EXCEPTION = 17, False, "The topic's name is not valid, or it must not be touched."
    RECORD_LIST_TOO_LARGE = 18, False, "The batch is larger than a segment."
    NOT_ENOUGH_REPLICAS = 19, True, "Fewer replicas are in sync than min.insync.replicas asks for."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "Written, but on fewer replicas than asked for."
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1."
    ILLEGAL_GENERATION = 22, False, "The group is at another generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member shares no protocol with its group."
    INVALID_GROUP_ID = 24, False, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, False, "The coordinator does not know this member."
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is outside what the broker allows."
    REBALANCE_IN_PROGRESS = 27, False, "The group rebalances; join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The commit is too large."
    TOPIC_AUTHORIZATION_FAILED = 29, False, "Not allowed for this topic."
    GROUP_AUTHORIZATION_FAILED = 30, False, "Not allowed for this group."
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "Not allowed for this cluster."
    INVALID_TIMESTAMP = 32, False, "A timestamp is too far from the broker's clock."
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The SASL mechanism is not supported."
    ILLEGAL_SASL_STATE = 34, False, "Not possible at this point of the login."
    UNSUPPORTED_VERSION = 35, False, "This version of the API is not supported."
    TOPIC_ALREADY_EXISTS = 36, False, "A topic of this name exists."
    INVALID_PARTITIONS = 37, False, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, False, "The replication factor cannot be met."
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The assignment of replicas is not valid."
    INVALID_CONFIG = 40, False, "A configuration value is not valid."
    NOT_CONTROLLER = 41, True, "Another broker is the controller."
    INVALID_REQUEST = 42, False, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "Not possible with this message format."
    POLICY_VIOLATION = 44, False, "A policy of the cluster forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "A batch of this producer is missing before it."
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "This batch was there before."
    INVALID_PRODUCER_EPOCH = 47, False, "The producer's epoch is old."
    INVALID_TXN_STATE = 48, False, "Not possible in this state of the transaction."
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The transactional id has another producer id."
    INVALID_TRANSACTION_TIMEOUT = 50, False, "The transaction timeout is longer than allowed."
    CONCURRENT_TRANSACTIONS = 51, True, "The transaction is being changed by something else."
    TRANSACTION_COORDINATOR_FENCED = 52, False, "Another coordinator has the producer now."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "Not allowed for this transactional id."
    SECURITY_DISABLED = 54, False, "Security is switched off."
    OPERATION_NOT_ATTEMPTED = 55, False, "Not tried, because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, True, "The disk failed."
    LOG_DIR_NOT_FOUND = 57, False, "There is no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, False, "The login was refused."
    UNKNOWN_PRODUCER_ID = 59, False, "Nothing is known of this producer; its records may be gone."
    REASSIGNMENT_IN_PROGRESS = 60, False, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The token belongs to another user."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "Tokens cannot be asked for here."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "Not allowed for this delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, False, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, False, "This type of principal is not supported."
    NON_EMPTY_GROUP = 68, False, "The group has members."
    GROUP_ID_NOT_FOUND = 69, False, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "The fetch session is gone; open a new one."
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch session is at another epoch."
    LISTENER_NOT_FOUND = 72, True, "The leader has no listener of this name."
    TOPIC_DELETION_DISABLED = 73, False, "Topics cannot be deleted here."
    FENCED_LEADER_EPOCH = 74, True, "The client knows an older leader epoch than the broker."
    UNKNOWN_LEADER_EPOCH = 75, True, "The client knows a newer leader epoch than the broker."
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "The codec is not allowed in this version or topic."
    STALE_BROKER_EPOCH = 77, False, "The broker has registered again."
    OFFSET_NOT_AVAILABLE = 78, True, "The new leader does not know the high watermark yet."
    MEMBER_ID_REQUIRED = 79, False, "Join again with the member id given here."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, False, "The group is full."
    FENCED_INSTANCE_ID = 82, False, "Another member has taken this group.instance.id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "No replica that may lead is available."
    ELECTION_NOT_NEEDED = 84, True, "The right broker leads already."
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "The group still reads this topic."
    INVALID_RECORD = 87, False, "A record is not valid."
    UNSTABLE_OFFSET_COMMIT = 88, True, "A transaction holds offsets that are not decided."
    THROTTLING_QUOTA_EXCEEDED = 89, True, "A quota is used up; try later."
    PRODUCER_FENCED = 90, False, "A newer producer has this transactional id."
    RESOURCE_NOT_FOUND = 91, False, "There is no such resource."
    DUPLICATE_RESOURCE = 92, False, "The request names one resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential does not meet the rules."
    INCONSISTENT_VOTER_SET = 94, False, "Sender and receiver disagree on who votes."
    INVALID_UPDATE_VERSION = 95, False, "The version of the update is not valid."
    FEATURE_UPDATE_FAILED = 96, False, "The features could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "A forwarded principal cannot be read."
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, False, "The position is outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, True, "There is no topic of this id here."
    DUPLICATE_BROKER_REGISTRATION = 101, False, "The broker id is in use."
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker has this id."
    INCONSISTENT_TOPIC_ID = 103, True, "The topic's id is another one."
    INCONSISTENT_CLUSTER_ID = 104, False, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "The fetch session mixes topic names and ids."
    INELIGIBLE_REPLICA = 107, False, "A replica named may not be in sync."
    NEW_LEADER_ELECTED = 108, False, "Done, and the leader has changed with it."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset is in tiered storage only."
    FENCED_MEMBER_EPOCH = 110, False, "The member is fenced; give up everything and join again."
    UNRELEASED_INSTANCE_ID = 111, False, "Another member still has this instance id."
    UNSUPPORTED_ASSIGNOR = 112, False, "The group has no such assignor."
    STALE_MEMBER_EPOCH = 113, False, "The member must take its new epoch first."
    MISMATCHED_ENDPOINT_TYPE = 114, False, "The request went to the wrong kind of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "This kind of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, False, "There is no such controller."
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription is out of date."
    TELEMETRY_TOO_LARGE = 118, False, "The telemetry is larger than the broker takes."
    INVALID_REGISTRATION = 119, False, "The controller does not accept the registration."
    TRANSACTION_ABORTABLE = 120, False, "The transaction failed; abort it and go on."
    INVALID_RECORD_STATE = 121, False, "The record is not in the state acknowledged."
    SHARE_SESSION_NOT_FOUND = 122, True, "The share session is gone."
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The share session is at another epoch."
    FENCED_STATE_EPOCH = 124, False, "The state of the share group is at another epoch."
    INVALID_VOTER_KEY = 125, False, "The replica has another voter key."
    DUPLICATE_VOTER = 126, False, "The voter is there already."
    VOTER_NOT_FOUND = 127, False, "There is no such voter."
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, False, "The client should begin again with its seeds."
    STREAMS_INVALID_TOPOLOGY = 130, False, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The topology's epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, False, "The topology's epoch is old."
    SHARE_SESSION_LIMIT_REACHED = 133, True, "There are too many share sessions."
    GROUP_DELETION_FAILED = 134, False, "The group was not deleted; its own message says why."
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, False, "The topology was not described."
    CONTROLLER_ID_NOT_REGISTERED = 136, False, "No controller has this id."


_BY_CODE = {int(error): error for error in Error}


def message_of(code: int) -> str:
    """The sentence of a code; also for codes of other brokers."""
    error = _BY_CODE.get(code)
    return error.message if error is not None else f"Unknown error {code}."


def name_of(code: int) -> str:
    """Kafka's name of a code; the number of a code that this release does not know."""
    error = _BY_CODE.get(code)
    return error.name if error is not None else str(code)


def is_retriable(code: int) -> bool:
    """Whether the same request may succeed later; unknown codes are taken as final."""
    error = _BY_CODE.get(code)
    return error is not None and error.retriable
