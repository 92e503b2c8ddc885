"""The reference pages are what the tables say (STYLE, rule 10)."""

from pathlib import Path

from strandline.config.broker import BROKER_KEYS
from strandline.config.cluster import CLUSTER_KEYS
from strandline.config.kafka.table import FIXED_KEYS, STORED_KEYS
from strandline.config.keys import keys_of
from strandline.config.reference import render_pages
from strandline.config.topic import TOPIC_KEYS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_written_pages_are_up_to_date() -> None:
    for name, text in render_pages().items():
        assert (REFERENCE / name).read_text() == text, (
            f"docs/reference/{name} is old: strandline config reference --write docs/reference"
        )


def test_every_key_is_on_its_page() -> None:
    pages = render_pages()
    for row in BROKER_KEYS:
        assert f"| `{row.name.rpartition('.')[2]}` |" in pages["broker-config.md"], row.name
    for row in (*TOPIC_KEYS, *CLUSTER_KEYS):
        assert f"| `{row.name}` |" in pages["topic-config.md"], row.name
    for row in (*STORED_KEYS, *FIXED_KEYS):
        assert f"| `{row.name}` |" in pages["kafka-broker-config.md"], row.name


def test_every_key_says_what_it_means_in_sentences() -> None:
    for row in (*BROKER_KEYS, *TOPIC_KEYS, *CLUSTER_KEYS):
        assert row.doc.endswith((".", ".)")), row.name
        assert row.name.endswith((".ms", "_ms", ".bytes", "_bytes", "_bytes_max")) == (
            row.unit in ("ms", "bytes")
        ), f"{row.name} has the unit {row.unit!r}"


def test_every_key_that_is_only_kafkas_has_a_sentence_of_its_own() -> None:
    for row in (*STORED_KEYS, *FIXED_KEYS):
        assert row.doc.endswith("."), row.name
    for row in STORED_KEYS:
        assert row.doc.endswith("changes nothing."), row.name


def test_a_key_that_kafka_does_not_have_says_so() -> None:
    """AlterConfigs leaves such a key, so that the flag has to be right."""
    for row in TOPIC_KEYS:
        assert row.own == ("Not a key of Kafka" in row.doc), row.name


def test_defaults_lie_within_their_bounds() -> None:
    for row in (*BROKER_KEYS, *TOPIC_KEYS, *CLUSTER_KEYS):
        if row.default is not None and row.default != "":
            row.require(row.default)


def test_dotted_names_are_the_fields_of_the_class() -> None:
    from strandline.config.topic import TopicConfig

    assert [row.field for row in keys_of(TopicConfig, dotted=True)] == [
        row.name for row in keys_of(TopicConfig)
    ]
