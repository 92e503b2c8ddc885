"""Every API that changes something has a line in the audit log, with names and no values."""

import json
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.broker.broker_world import BrokerWorld, Sink

from strandline.broker.access.authorisation import Authorisation
from strandline.broker.access.changes import CHANGES
from strandline.broker.handler_table import HANDLERS
from strandline.config.access_section import AccessSection
from strandline.model.access import (
    CLUSTER_NAME,
    Kind,
    Operation,
    PatternType,
    Permission,
    Rule,
)
from strandline.protocol.apis import API_KEYS, APIS
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.protocol.table import columns
from strandline.security.audit.audit_log import AuditLog
from strandline.security.audit.event import AuditEvent, EventKind, line_of
from strandline.security.session import Principal, Session

CHANGING = (
    "Alter",
    "Create",
    "Declare",
    "Delete",
    "Elect",
    "Identify",
    "Incremental",
    "Isolate",
    "Recover",
    "Repair",
    "Rule",
    "Unregister",
    "Update",
)
NOTHING_CHANGES = {"CreateDelegationToken", "AlterReplicaLogDirs"}
"""The one is refused always; the other answers only where a log is."""
SECRET = "a value that no line may have"


SECRETS = ("value", "salt", "salted_password")


def filled(kind: type[Any], *, code: int) -> Any:
    """A message with one row in each list, a recognisable text in each field, and this error."""
    made = kind()
    for column in columns(kind):
        one: object
        if column.name == "error_code":
            one = code
        elif column.element is not None:
            one = filled(column.element, code=code)
        elif column.name in SECRETS:
            one = SECRET.encode() if column.wire == "bytes" else SECRET
        elif column.wire == "string":
            one = "a-name"
        elif column.name in ("broker_id", "broker_ids"):
            one = 7
        else:
            continue
        setattr(made, column.name, [one] if column.is_array else one)
    return made


def test_every_api_that_changes_something_has_a_row() -> None:
    served = {APIS[key].name for key in HANDLERS}
    changing = {one for one in served if one.startswith(CHANGING)}
    assert changing - NOTHING_CHANGES | {"OffsetDelete"} == CHANGES.keys()


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize("code", [Error.NONE, Error.POLICY_VIOLATION])
def test_a_change_has_a_name_the_answers_error_and_no_value(name: str, code: Error) -> None:
    api = APIS[API_KEYS[name]]
    changes = list(CHANGES[name](filled(api.request, code=code), filled(api.response, code=code)))
    assert changes
    for one in changes:
        assert one.operation and one.kind and one.name and one.code == code
    assert SECRET not in repr(changes)


class Recorder:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def add(self, event: AuditEvent) -> None:
        self.events.append(event)


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_request_that_only_validates_has_no_line(*, validate_only: bool) -> None:
    world, recorder = BrokerWorld(), Recorder()
    world.services.audit = cast("AuditLog", recorder)
    request = CreateTopicsRequest(topics=[CreatableTopic("orders")], validate_only=validate_only)
    world.send(request, 7)
    world.advance(0)
    told = [(one.kind, one.resource_name, one.error) for one in recorder.events]
    line = (EventKind.CHANGE, "orders", "REQUEST_TIMED_OUT")  # No controller answers.
    assert told == ([] if validate_only else [line])


ANALYSTS = Rule(
    Kind.CLUSTER,
    PatternType.LITERAL,
    CLUSTER_NAME,
    "Group:analysts",
    "*",
    Operation.CREATE,
    Permission.ALLOW,
)
INTERNS = Rule(
    Kind.TOPIC,
    PatternType.LITERAL,
    "orders",
    "Group:interns",
    "*",
    Operation.ALL,
    Permission.DENY,
)


@pytest.mark.parametrize(
    ("groups", "rules", "told"),
    [
        ({"analysts", "others"}, [ANALYSTS], ("change", "allowed", "analysts")),
        ({"interns"}, [ANALYSTS, INTERNS], ("refusal", "denied", "interns")),
        ({"others"}, [ANALYSTS], ("refusal", "denied", None)),
        (
            {"analysts"},
            [ANALYSTS, replace(ANALYSTS, principal="User:a")],
            ("change", "allowed", None),
        ),
    ],
)
def test_a_line_names_the_groups_whose_rules_decided(
    groups: set[str], rules: list[Rule], told: tuple[str, str, str | None]
) -> None:
    world, recorder = BrokerWorld(), Recorder()
    services = world.services
    services.audit = cast("AuditLog", recorder)
    services.access = Authorisation(
        AccessSection(enforce_rules=True, super_users=("User:admin",)),
        services.cluster,
        broker_id=services.broker_id,
    )
    services.cluster.access.rules = dict.fromkeys(rules)
    sink = Sink()
    sink.session = Session(principal=Principal.user("a"), groups=frozenset(groups))
    world.send(CreateTopicsRequest(topics=[CreatableTopic("orders")]), 7, sink=sink)
    world.advance(0)
    lines = [
        json.loads(line_of(one, broker_id=1, wall_ms=0))
        for one in recorder.events
        if one.operation == "CREATE"
    ]
    assert [(one["event"], one["result"], one.get("groups")) for one in lines] == [told]
