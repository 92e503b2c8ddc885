"""Kafka's tools by a user with rules for names with the prefix `allowed-`: what it may use works,
and what it may not is refused by its name, at once.

How:    the tools have their own words and exit codes for a refusal; what is looked for is the error
        and the name. A tool that hangs fails by `TIMEOUT_S` of `clients.access.tools`.
Source: https://kafka.apache.org/43/ (operations, security); docs/reference/clients.md."""

import subprocess

import pytest
from tests.clients.test_kafka_tools import Typed, refused, typed

__all__ = ["typed"]  # The fixture.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

TOPIC, GROUP = "allowed-tools", "allowed-readers"
HIDDEN_TOPIC, HIDDEN_GROUP = "hidden", "hidden-readers"
TOPICS, GROUPS = "kafka-topics", "kafka-consumer-groups"
PRODUCER, CONSUMER, CONFIGS = "kafka-console-producer", "kafka-console-consumer", "kafka-configs"
READS = ("--from-beginning", "--timeout-ms", "30000", "--max-messages")
EXECUTES = ("--to-earliest", "--execute")


@pytest.fixture(scope="module")
def filled(typed: Typed) -> Typed:
    """A topic and a group of the user, and others that it may not see."""
    typed.app.run(TOPICS, "--create", "--topic", TOPIC, "--partitions", "1")
    typed.app.run(PRODUCER, "--topic", TOPIC, typed="one\ntwo\nthree\n")
    typed.app.run(CONSUMER, "--topic", TOPIC, "--group", GROUP, *READS, "3")
    typed.admin.run(TOPICS, "--create", "--topic", HIDDEN_TOPIC, "--partitions", "1")
    typed.admin.run(PRODUCER, "--topic", HIDDEN_TOPIC, typed="secret\n")
    typed.admin.run(CONSUMER, "--topic", HIDDEN_TOPIC, "--group", HIDDEN_GROUP, *READS, "1")
    return typed


def hides(done: "subprocess.CompletedProcess[str]") -> None:
    """A tool that says that there is no such topic: a hidden one looks like it."""
    assert f"'{HIDDEN_TOPIC}' does" in done.stdout + done.stderr, done.stdout + done.stderr


def test_kafka_topics_shows_changes_and_deletes_what_the_user_may(filled: Typed) -> None:
    app = filled.app
    assert app.run(TOPICS, "--list").split() == [TOPIC]
    for words in (("--describe",), ("--describe", "--topic", TOPIC)):
        shown = app.run(TOPICS, *words)
        assert f"Topic: {TOPIC}\tTopicId: " in shown and HIDDEN_TOPIC not in shown
    app.run(TOPICS, "--create", "--topic", "allowed-brief", "--partitions", "1")
    app.run(TOPICS, "--alter", "--topic", "allowed-brief", "--partitions", "2")
    assert "PartitionCount: 2" in app.run(TOPICS, "--describe", "--topic", "allowed-brief")
    app.run(TOPICS, "--delete", "--topic", "allowed-brief")
    assert app.run(TOPICS, "--list").split() == [TOPIC]


def test_kafka_topics_refuses_what_the_user_may_not(filled: Typed) -> None:
    app = filled.app
    refused(app.attempt(TOPICS, "--create", "--topic", "another"), "TopicAuthorizationException")
    hides(app.attempt(TOPICS, "--describe", "--topic", HIDDEN_TOPIC))
    hides(app.attempt(TOPICS, "--alter", "--topic", HIDDEN_TOPIC, "--partitions", "2"))
    hides(app.attempt(TOPICS, "--delete", "--topic", HIDDEN_TOPIC))
    listed = filled.admin.run(TOPICS, "--list").split()
    assert HIDDEN_TOPIC in listed and "another" not in listed


def test_console_tools_name_the_topic_or_the_group_that_they_may_not_use(filled: Typed) -> None:
    app = filled.app
    written = app.attempt(PRODUCER, "--topic", HIDDEN_TOPIC, typed="mine\n")
    refused(written, f"Not authorized to access topics: [{HIDDEN_TOPIC}]")
    read = app.attempt(CONSUMER, "--topic", HIDDEN_TOPIC, "--group", GROUP, *READS, "1")
    refused(read, f"Not authorized to access topics: [{HIDDEN_TOPIC}]")
    read = app.attempt(CONSUMER, "--topic", TOPIC, "--group", HIDDEN_GROUP, *READS, "1")
    refused(read, f"Not authorized to access group: {HIDDEN_GROUP}")
    words = ("--topic", HIDDEN_TOPIC, "--partition", "0", *READS, "1")
    assert filled.admin.run(CONSUMER, *words).split() == ["secret"]


def test_kafka_consumer_groups_shows_and_resets_what_the_user_may(filled: Typed) -> None:
    app = filled.app
    assert app.run(GROUPS, "--list").split() == [GROUP]
    reset = ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, *EXECUTES)
    for which, committed in ((("--group", GROUP), "3"), (("--all-groups",), "0")):
        shown = app.run(GROUPS, "--describe", *which)
        (row,) = [line.split() for line in shown.splitlines() if line.startswith(GROUP)]
        assert row[:5] == [GROUP, TOPIC, "0", committed, "3"] and HIDDEN_GROUP not in shown
        app.run(GROUPS, *reset)
    read = app.run(CONSUMER, "--topic", TOPIC, "--group", GROUP, *READS, "3")
    assert read.split() == ["one", "two", "three"]


def test_kafka_consumer_groups_names_the_group_that_the_user_may_not_use(filled: Typed) -> None:
    app, hidden = filled.app, ("--group", HIDDEN_GROUP)
    for words in (
        ("--describe", *hidden),
        ("--delete", *hidden),
        ("--reset-offsets", *hidden, "--topic", TOPIC, *EXECUTES),
    ):
        done = app.attempt(GROUPS, *words)
        refused(done, "GroupAuthorizationException")
        refused(done, HIDDEN_GROUP)
    own = ("--reset-offsets", "--group", GROUP, "--topic", HIDDEN_TOPIC, *EXECUTES)
    refused(app.attempt(GROUPS, *own), "TopicAuthorizationException")
    assert HIDDEN_GROUP in filled.admin.run(GROUPS, "--list").split()


def test_kafka_configs_changes_the_users_topics_alone(filled: Typed) -> None:
    app, change = filled.app, ("--add-config", "retention.ms=3600000")
    own = ("--entity-type", "topics", "--entity-name", TOPIC)
    app.run(CONFIGS, "--alter", *own, *change)
    assert "retention.ms=3600000" in app.run(CONFIGS, "--describe", *own)
    other = ("--entity-type", "topics", "--entity-name", HIDDEN_TOPIC)
    refused(app.attempt(CONFIGS, "--alter", *other, *change), "TopicAuthorizationException")
    hides(app.attempt(CONFIGS, "--describe", *other))
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    refused(app.attempt(CONFIGS, "--describe", *broker), "ClusterAuthorizationException")
    assert "3600000" not in filled.admin.run(CONFIGS, "--describe", *other)


def test_a_wrong_password_is_told_at_once(filled: Typed) -> None:
    wrong = filled.app.but(password="another")
    refused(wrong.attempt(TOPICS, "--list"), "Authentication failed: invalid user credentials")
