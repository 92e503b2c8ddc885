"""The words of a rule, with Kafka's numbers.

Why:    requests, answers, the controller's log and the command line name the same things.
Source: Kafka 4.3's AclOperation, AclPermissionType, ResourceType, PatternType."""

from enum import IntEnum


class Operation(IntEnum):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """What a rule says of it."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Kind(IntEnum):
    """The kind of a resource."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's name is compared with a resource's."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """In filters only: every pattern that covers the resource."""
    LITERAL = 3
    PREFIXED = 4


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of kind CLUSTER."""
WILDCARD = "*"
"""As a literal name: all of a kind. As a host: every host."""
WILDCARD_PRINCIPAL = "User:*"
ANONYMOUS = "User:ANONYMOUS"

IMPLIED: dict[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""{an operation: those whose permission includes it}. A denial includes no other operation."""

OPERATIONS_OF: dict[Kind, tuple[Operation, ...]] = {
    Kind.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Kind.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Kind.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    Kind.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    Kind.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Kind.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""{kind: the operations that clients are told of}; see KIP-430."""
