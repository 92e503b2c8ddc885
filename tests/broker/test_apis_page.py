"""The page of APIs is what the broker serves, and each API of Kafka is on it.

Source: STYLE, rule 10; the list of Kafka 4.3's requests in kio."""

from pathlib import Path

import pytest
from kio.schema.index import api_key_map
from tests.broker.access_table import ROWS, Row

from strandline.broker.access.requirements import rights_of
from strandline.broker.apis_page import PAGE, note_of, render_apis_page
from strandline.broker.handler_table import HANDLERS
from strandline.broker.not_offered import NOT_OFFERED
from strandline.protocol.apis import APIS, OWN_APIS_FROM

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
BETWEEN_BROKERS = {
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    56: "AlterPartition",
    58: "Envelope",
    59: "FetchSnapshot",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    67: "AllocateProducerIds",
    70: "ControllerRegistration",
    73: "AssignReplicasToDirs",
    82: "UpdateRaftVoter",
}
"""What Kafka's brokers and controllers send each other: not for clients."""


def test_the_written_page_is_up_to_date() -> None:
    assert (REFERENCE / PAGE).read_text() == render_apis_page(), (
        f"docs/reference/{PAGE} is old: strandline config reference --write docs/reference"
    )


def test_each_request_of_kafka_is_served_or_said_to_be_missing() -> None:
    offered = {key for key in HANDLERS if key < OWN_APIS_FROM}
    missing = {row.key for row in NOT_OFFERED}
    assert offered & missing == set(), "a row of NOT_OFFERED is served: remove it"
    assert offered | missing | set(BETWEEN_BROKERS) == set(api_key_map)
    assert [row.key for row in NOT_OFFERED] == sorted(missing)


def test_missing_apis_have_kafkas_names_and_a_reason() -> None:
    for row in NOT_OFFERED:
        assert api_key_map[row.key].replace("_", "") == row.name.lower()
        assert row.reason.endswith(".")


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_a_handler_says_what_it_does(key: int) -> None:
    note = note_of(HANDLERS[key])
    assert note[:1].isupper() and note.endswith("."), note
    assert f"| {key} | {APIS[key].name} |" in render_apis_page()


@pytest.mark.parametrize("one", ROWS, ids=[f"{one.api}-{one.needed[0].kind.name}" for one in ROWS])
def test_the_page_names_each_right_that_a_request_needs(one: Row) -> None:
    words = rights_of(one.api)
    for operation, kind in (*one.needed, *one.given):
        assert f"`{operation.name.lower().replace('_', '-')}`" in words, words
        assert kind.name.lower() in words, words
