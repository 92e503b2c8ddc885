"""Rules that are legal and those that are not, and filters: requests whose whole answers count.

How:    one request after the other by the super user; after each change all rules are described."""

from collections.abc import Iterator

from differential.access.steps import Step
from strandline.model.access import Kind, Operation, PatternType, Permission
from strandline.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from strandline.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.protocol.messages.describe_acls import DescribeAclsRequest

VERSION = 3
OLD_VERSION = 1
NO_SUCH_NUMBER = 99


def creation(**fields: object) -> AclCreation:
    """A legal rule but for these fields."""
    made = AclCreation(
        resource_type=Kind.TOPIC,
        resource_name="t",
        resource_pattern_type=PatternType.LITERAL,
        principal="User:p",
        host="*",
        operation=Operation.READ,
        permission_type=Permission.ALLOW,
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def rule_filter(**fields: object) -> DeleteAclsFilter:
    """A filter of everything but for these fields."""
    made = DeleteAclsFilter(
        resource_type_filter=Kind.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def described(**fields: object) -> DescribeAclsRequest:
    """A request for the rules that fit such a filter."""
    one = rule_filter(**fields)
    return DescribeAclsRequest(**{name: getattr(one, name) for name in one.__struct_fields__})


ILLEGAL: dict[str, dict[str, object]] = {
    "principal without a type": {"principal": "p"},
    "principal that is empty": {"principal": ""},
    "principal of another type": {"principal": "Group:p"},
    "principal in small letters": {"principal": "user:p"},
    "principal of everyone": {"principal": "User:*"},
    "host that is no address": {"host": "somewhere"},
    "host of a network": {"host": "10.0.0.0/8"},
    "cluster of another name": {"resource_type": Kind.CLUSTER, "resource_name": "other"},
    "cluster of any name": {"resource_type": Kind.CLUSTER, "resource_name": "*"},
    "cluster by a prefix": {
        "resource_type": Kind.CLUSTER,
        "resource_name": "kafka",
        "resource_pattern_type": PatternType.PREFIXED,
    },
    "name that is empty": {"resource_name": ""},
    "name that is no topic's": {"resource_name": "a/b c"},
    "prefix *": {"resource_name": "*", "resource_pattern_type": PatternType.PREFIXED},
    "literal *": {"resource_name": "*"},
    "type UNKNOWN": {"resource_type": Kind.UNKNOWN},
    "type ANY": {"resource_type": Kind.ANY},
    "type that is none": {"resource_type": NO_SUCH_NUMBER},
    "type TRANSACTIONAL_ID": {"resource_type": Kind.TRANSACTIONAL_ID},
    "type DELEGATION_TOKEN": {
        "resource_type": Kind.DELEGATION_TOKEN,
        "operation": Operation.DESCRIBE,
    },
    "type USER": {
        "resource_type": Kind.USER,
        "resource_name": "User:p",
        "operation": Operation.CREATE_TOKENS,
    },
    "pattern UNKNOWN": {"resource_pattern_type": PatternType.UNKNOWN},
    "pattern ANY": {"resource_pattern_type": PatternType.ANY},
    "pattern MATCH": {"resource_pattern_type": PatternType.MATCH},
    "pattern that is none": {"resource_pattern_type": NO_SUCH_NUMBER},
    "operation UNKNOWN": {"operation": Operation.UNKNOWN},
    "operation ANY": {"operation": Operation.ANY},
    "operation that is none": {"operation": NO_SUCH_NUMBER},
    "operation ALL": {"operation": Operation.ALL},
    "operation of another type": {"resource_type": Kind.GROUP, "operation": Operation.WRITE},
    "permission UNKNOWN": {"permission_type": Permission.UNKNOWN},
    "permission ANY": {"permission_type": Permission.ANY},
    "permission that is none": {"permission_type": NO_SUCH_NUMBER},
}
"""{what is special of a rule: the fields}"""
NEVER_FIT: dict[str, dict[str, object]] = {
    "principal without a name": {"principal": "User:"},
    "principal with an empty type": {"principal": ":p"},
    "host that is empty": {"host": ""},
}
"""Rules that no client can ever meet; they come last, for they stay in the cluster."""
FILTERS: dict[str, dict[str, object]] = {
    "everything": {},
    "one name, any pattern": {"resource_name_filter": "orders-1"},
    "one name that matches": {
        "resource_name_filter": "orders-1",
        "pattern_type_filter": PatternType.MATCH,
    },
    "one name that matches, of topics": {
        "resource_type_filter": Kind.TOPIC,
        "resource_name_filter": "orders-1",
        "pattern_type_filter": PatternType.MATCH,
    },
    "prefix": {"resource_name_filter": "orders-", "pattern_type_filter": PatternType.PREFIXED},
    "literal *": {"resource_name_filter": "*", "pattern_type_filter": PatternType.LITERAL},
    "* that matches": {"resource_name_filter": "*", "pattern_type_filter": PatternType.MATCH},
    "no name, matches": {"pattern_type_filter": PatternType.MATCH},
    "no name, literal": {"pattern_type_filter": PatternType.LITERAL},
    "empty name": {"resource_name_filter": ""},
    "principal": {"principal_filter": "User:p"},
    "principal of everyone": {"principal_filter": "User:*"},
    "principal without a type": {"principal_filter": "p"},
    "host": {"host_filter": "10.0.0.1"},
    "every host": {"host_filter": "*"},
    "operation": {"operation": Operation.READ},
    "operation ALL": {"operation": Operation.ALL},
    "operation UNKNOWN": {"operation": Operation.UNKNOWN},
    "operation that is none": {"operation": NO_SUCH_NUMBER},
    "permission": {"permission_type": Permission.DENY},
    "permission UNKNOWN": {"permission_type": Permission.UNKNOWN},
    "type UNKNOWN": {"resource_type_filter": Kind.UNKNOWN},
    "type that is none": {"resource_type_filter": NO_SUCH_NUMBER},
    "pattern UNKNOWN": {"pattern_type_filter": PatternType.UNKNOWN},
    "pattern that is none": {"pattern_type_filter": NO_SUCH_NUMBER},
    "cluster": {"resource_type_filter": Kind.CLUSTER},
}
"""{what is special of a filter: the fields}"""
ORDERS = (
    creation(resource_name="orders-1", principal="User:q"),
    creation(resource_name="orders-", resource_pattern_type=PatternType.PREFIXED),
    creation(resource_name="*", principal="User:*", permission_type=Permission.DENY),
    creation(resource_name="orders-1", resource_type=Kind.GROUP, host="10.0.0.1"),
    creation(resource_name="orders-1", operation=Operation.ALL),
)


def steps() -> Iterator[Step]:
    """The requests, in turn."""
    everything = described()
    yield Step("describe none", everything, VERSION)
    for what, fields in ILLEGAL.items():
        yield Step(f"create: {what}", CreateAclsRequest([creation(**fields)]), VERSION)
    old = creation(resource_name="old")
    yield Step("create in an old version", CreateAclsRequest([old]), OLD_VERSION)
    yield Step("create again", CreateAclsRequest([old]), VERSION)
    twice = [creation(resource_name="twice")] * 2
    yield Step("create twice at once", CreateAclsRequest(twice), VERSION)
    mixed = [creation(resource_name="good"), creation(resource_name=""), creation(host="::1")]
    yield Step("create some, one of them illegal", CreateAclsRequest(mixed), VERSION)
    yield Step("create none", CreateAclsRequest([]), VERSION)
    yield Step("describe what was created", everything, VERSION, settles=True)
    yield Step("describe in an old version", everything, OLD_VERSION)
    yield Step("delete everything", DeleteAclsRequest([rule_filter()]), VERSION)
    yield Step("describe after that", everything, VERSION, settles=True)
    yield Step("create for filters", CreateAclsRequest(list(ORDERS)), VERSION)
    for number, (what, fields) in enumerate(FILTERS.items()):
        yield Step(f"describe: {what}", described(**fields), VERSION, settles=not number)
    for what, fields in FILTERS.items():
        yield Step(f"delete: {what}", DeleteAclsRequest([rule_filter(**fields)]), VERSION)
        yield Step(f"create after {what}", CreateAclsRequest(list(ORDERS)), VERSION)
    several = [
        rule_filter(principal_filter="User:q"),
        rule_filter(operation=Operation.UNKNOWN),
        rule_filter(resource_name_filter="orders-1"),
    ]
    yield Step("delete by filters, one of them illegal", DeleteAclsRequest(several), VERSION)
    yield Step("create after that", CreateAclsRequest(list(ORDERS)), VERSION)
    overlapping = [rule_filter(principal_filter="User:p"), rule_filter(), rule_filter()]
    yield Step("delete by filters that overlap", DeleteAclsRequest(overlapping), VERSION)
    yield Step("delete by no filter", DeleteAclsRequest([]), VERSION)
    yield Step("describe at last", everything, VERSION, settles=True)
    for what, fields in NEVER_FIT.items():
        yield Step(f"create: {what}", CreateAclsRequest([creation(**fields)]), VERSION)
