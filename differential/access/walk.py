"""Every request by every client; what the cluster holds before.

How:    `prepare` makes topics, groups and rules; `walk` asks, and puts back what an allowed request
        has changed. Both work through a `Target`: Kafka's sockets, or a broker in virtual time."""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from differential.access.admin_requests import ADMIN_REQUESTS
from differential.access.requests import (
    CREATING_REQUESTS,
    GROUPS,
    NAMED,
    REQUESTS,
    TIMEOUT_MS,
    Ids,
    Request,
    all_topics,
    batch,
    commit_of,
)
from differential.access.subjects import (
    ABSENT_GROUP,
    ABSENT_TOPIC,
    ADMIN,
    CREATING_SUBJECTS,
    FOR_EVERYONE,
    NEW_TOPIC,
    OPEN_SUBJECTS,
    SUBJECTS,
    TOPICS,
    Subject,
)
from differential.access.summary import summarise
from strandline.model.access import Rule
from strandline.protocol.messages import (
    alter_user_scram_credentials,
    create_acls,
    create_topics,
    delete_topics,
    produce,
)
from strandline.protocol.messages.find_coordinator import FindCoordinatorRequest
from strandline.protocol.messages.init_producer_id import InitProducerIdRequest
from strandline.protocol.messages.metadata import MetadataResponse
from strandline.protocol.table import Message

ALL_REQUESTS = REQUESTS + ADMIN_REQUESTS
TABLES = {"rules": SUBJECTS, "open": OPEN_SUBJECTS, "creating": CREATING_SUBJECTS}
"""{table: its clients}; `open` is of a cluster with `allow.everyone.if.no.acl.found`, `creating` of
one with `auto.create.topics.enable`."""
SCRAM_SHA_256, ITERATIONS = 1, 4_096
USER = "kept"
"""It has a password; no client of a table logs in as it."""
NO_SUCH_ID = UUID(int=4711)
TRIES_MAX = 200
CHANGED = ("NONE", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION")
"""Words of an answer after which something may have changed."""

Answers = dict[str, list[str]]
"""{an answer as one line: the clients that get it}"""
Table = dict[str, dict[str, Answers]]
"""{request: {its versions with these answers, such as "v3 v13": answers}}"""


class Target(Protocol):
    """A broker that serves clients."""

    def ask(self, user: str, request: Message, version: int) -> Message | None:
        """The answer that the user gets; None if the broker hangs up."""

    def pause(self) -> None:
        """Let a moment go by."""


def prepare(target: Target, rules: Iterable[Rule]) -> None:
    """Make what requests are about, the rules, and a user with a password."""
    target.ask(ADMIN, FindCoordinatorRequest(coordinator_keys=list(GROUPS)), 4)
    _until_none(target, InitProducerIdRequest(None, 1_000), 4)
    restore(target)
    password = alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        upsertions=[
            alter_user_scram_credentials.ScramCredentialUpsertion(
                USER, SCRAM_SHA_256, ITERATIONS, b"salt of the user", bytes(range(32))
            )
        ]
    )
    changed = target.ask(ADMIN, password, 0)
    assert isinstance(changed, alter_user_scram_credentials.AlterUserScramCredentialsResponse)
    assert not any(one.error_code for one in changed.results), changed
    creations = [
        create_acls.AclCreation(
            resource_type=one.kind,
            resource_name=one.name,
            resource_pattern_type=one.pattern,
            principal=one.principal,
            host=one.host,
            operation=one.operation,
            permission_type=one.permission,
        )
        for one in rules
    ]
    answer = target.ask(ADMIN, create_acls.CreateAclsRequest(creations), 3)
    assert isinstance(answer, create_acls.CreateAclsResponse)
    assert not any(one.error_code for one in answer.results), answer
    for _ in range(20):
        target.pause()


def rules_for(table: str) -> list[Rule]:
    """The rules of all clients of a table, and those that are about everyone."""
    own = [rule for one in TABLES[table] for rule in one.rules]
    return own + (list(FOR_EVERYONE) if table == "rules" else [])


def requests_for(table: str) -> tuple[Request, ...]:
    """The requests of a table."""
    return CREATING_REQUESTS if table == "creating" else ALL_REQUESTS


def restore(target: Target) -> None:
    """Make what is missing: topics with a record, groups with offsets. Delete what is new."""
    gone = delete_topics.DeleteTopicsRequest(topic_names=[NEW_TOPIC], timeout_ms=TIMEOUT_MS)
    target.ask(ADMIN, gone, 5)
    creations = [create_topics.CreatableTopic(name, 1, 1) for name in TOPICS]
    answer = target.ask(ADMIN, create_topics.CreateTopicsRequest(creations, TIMEOUT_MS), 7)
    assert isinstance(answer, create_topics.CreateTopicsResponse)
    made = {one.name: one.topic_id for one in answer.topics if not one.error_code}
    for _ in range(TRIES_MAX):
        known = topic_ids(target)
        are_there = set(TOPICS) <= set(known) and made.items() <= known.items()
        if are_there and NEW_TOPIC not in known:
            break
        target.pause()
    else:
        raise TimeoutError(f"the topics are {known}")
    for name in made:
        _until_none(target, _record(name), 9)
    for group in GROUPS:
        if group != ABSENT_GROUP:
            commit = commit_of(group, {**known, ABSENT_TOPIC: NO_SUCH_ID})
            commit.topics = [one for one in commit.topics if one.name != ABSENT_TOPIC]
            _until_none(target, commit, 8)


def topic_ids(target: Target) -> dict[str, UUID]:
    """{topic: its id}"""
    answer = target.ask(ADMIN, all_topics(), 12)
    assert isinstance(answer, MetadataResponse)
    return {one.name: one.topic_id for one in answer.topics if one.name}


def walk(
    target: Target,
    subjects: Iterable[Subject],
    requests: Iterable[Request],
    versions: dict[int, tuple[int, int]],
) -> Table:
    """All answers. `versions`: {API key: the lowest and the highest version to ask in}."""
    table: Table = {}
    for request in requests:
        by_version = {
            version: ask_all(target, subjects, request, version)
            for version in versions_of(request, versions)
        }
        table[request.title] = {}
        for version, answers in by_version.items():
            same = [f"v{one}" for one, others in by_version.items() if others == answers]
            if by_version[version] is answers and same[0] == f"v{version}":
                table[request.title][" ".join(same)] = answers
    return table


def versions_of(request: Request, versions: dict[int, tuple[int, int]]) -> list[int]:
    """The versions to ask a request in: the lowest and the highest that fit."""
    first, last = versions[request.make(_names_only()).API_KEY]
    return sorted({max(first, request.oldest), min(last, request.newest)})


def ask_all(target: Target, subjects: Iterable[Subject], request: Request, version: int) -> Answers:
    """The answers to one request, of all clients."""
    found: Answers = {}
    ids = _ids(target)
    for subject in subjects:
        names = {one: name for name, one in ids.items()}
        answer = target.ask(subject.user, request.make(ids), version)
        line = summarise(answer, names)
        found.setdefault(line, []).append(subject.title)
        if request.changes and any(word in line for word in CHANGED):
            restore(target)
            ids = _ids(target)
    return dict(sorted(found.items()))


def _ids(target: Target) -> Ids:
    known = topic_ids(target)
    return {name: known.get(name, NO_SUCH_ID) for name in NAMED}


def _names_only() -> Ids:
    return dict.fromkeys(NAMED, NO_SUCH_ID)


def _record(topic: str) -> Message:
    partition = produce.PartitionProduceData(0, bytes(batch()))
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[produce.TopicProduceData(topic, partition_data=[partition])],
    )


def _until_none(target: Target, request: Message, version: int) -> None:
    """Ask until there is no error."""
    for _ in range(TRIES_MAX):
        line = summarise(target.ask(ADMIN, request, version), {})
        if all("NONE" in part for part in line.split("; ")):
            return
        target.pause()
    raise TimeoutError(line)
