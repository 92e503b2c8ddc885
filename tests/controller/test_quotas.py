"""Quotas of clients: set, replaced, removed, each entity as a whole.

Source: Kafka 4.3's ClientQuotaControlManager and its tests (KIP-546)."""

import pytest
from tests.controller.controller_world import World

from strandline.controller.decide import quotas
from strandline.controller.quota_commands import AlterQuotas, QuotaAlteration, QuotaResults
from strandline.controller.snapshots.image import Builder, capture
from strandline.model.access import QuotaEntity
from strandline.protocol.errors import Error
from strandline.security.quotas.keys import CONSUMER_BYTE_RATE as READ
from strandline.security.quotas.keys import PRODUCER_BYTE_RATE as WRITE
from strandline.security.quotas.keys import REQUEST_PERCENTAGE as TIME

ALICE: QuotaEntity = (("user", "alice"),)
DEFAULT: QuotaEntity = (("user", None),)
PAIR: QuotaEntity = (("client-id", "c"), ("user", "alice"))
INVALID = int(Error.INVALID_REQUEST)


def change(
    world: World,
    *alterations: tuple[QuotaEntity, dict[str, float | None]],
    is_validation: bool = False,
) -> list[int]:
    command = AlterQuotas(
        tuple(QuotaAlteration(entity, tuple(values.items())) for entity, values in alterations),
        is_validation,
    )
    answer = world.run(command)
    assert isinstance(answer, QuotaResults)
    assert world.replayed().cluster.access == world.state.cluster.access
    return [one.error_code for one in answer.results]


def present(world: World) -> dict[QuotaEntity, dict[str, float]]:
    return world.state.cluster.access.quotas


def test_quotas_are_set_replaced_and_removed() -> None:
    world = World()
    assert change(world, (ALICE, {WRITE: 1_000, READ: 2_000}), (DEFAULT, {TIME: 50.5})) == [0, 0]
    assert present(world) == {ALICE: {WRITE: 1_000, READ: 2_000}, DEFAULT: {TIME: 50.5}}
    assert change(world, (ALICE, {WRITE: 3_000, READ: None})) == [0]
    assert present(world)[ALICE] == {WRITE: 3_000}
    assert change(world, (ALICE, {WRITE: None, TIME: None, "no-key": None})) == [0]
    assert present(world) == {DEFAULT: {TIME: 50.5}}


def test_the_order_of_types_does_not_matter() -> None:
    world = World()
    change(world, (PAIR, {WRITE: 1}))
    change(world, ((PAIR[1], PAIR[0]), {WRITE: 2}))
    assert present(world) == {PAIR: {WRITE: 2}}


def test_what_is_so_already_writes_no_record() -> None:
    world = World()
    change(world, (ALICE, {WRITE: 1_000}))
    before = len(world.log)
    assert change(world, (ALICE, {WRITE: 1_000, READ: None})) == [0]
    assert len(world.log) == before


@pytest.mark.parametrize(
    "alteration",
    [
        ((), {WRITE: 1}),
        ((("group", "g"),), {WRITE: 1}),
        ((("ip", "10.0.0.1"), ("user", "alice")), {WRITE: 1}),
        ((("ip", "10.0.0.1"),), {WRITE: 1}),
        (ALICE, {READ: 5, WRITE: 0}),
        (ALICE, {READ: 5, "x": 1}),
    ],
)
def test_what_is_not_legal_leaves_its_entity_alone_and_no_other(
    alteration: tuple[QuotaEntity, dict[str, float | None]],
) -> None:
    world = World()
    assert change(world, alteration, (DEFAULT, {WRITE: 1})) == [INVALID, 0]
    assert present(world) == {DEFAULT: {WRITE: 1}}


def test_an_entity_or_a_key_cannot_be_changed_twice_in_one_request() -> None:
    world = World()
    assert change(world, (ALICE, {WRITE: 1}), (ALICE, {WRITE: 2})) == [0, INVALID]
    twice = QuotaAlteration(ALICE, ((READ, 1.0), (READ, 2.0)))
    answer = world.run(AlterQuotas((twice,)))
    assert isinstance(answer, QuotaResults)
    assert answer.results[0].error_code == INVALID
    assert present(world) == {ALICE: {WRITE: 1}}


def test_a_validation_changes_nothing() -> None:
    world = World()
    command = ((ALICE, {WRITE: 1}), (DEFAULT, {WRITE: -1}))
    assert change(world, *command, is_validation=True) == [0, INVALID]
    assert present(world) == {}


def test_a_cluster_has_a_bounded_number_of_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "ENTITIES_MAX", 1)
    world = World()
    full = int(Error.POLICY_VIOLATION)
    assert change(world, (ALICE, {WRITE: 1}), (DEFAULT, {WRITE: 1})) == [0, full]
    assert change(world, (ALICE, {WRITE: 2}), (DEFAULT, {WRITE: 1})) == [0, full]


def test_a_request_has_a_bounded_number_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "CHANGES_PER_COMMAND_MAX", 1)
    answer = World().run(AlterQuotas((QuotaAlteration(ALICE, ((READ, 1.0), (WRITE, 2.0))),)))
    assert answer.error_code == Error.POLICY_VIOLATION


def test_a_snapshot_has_the_quotas() -> None:
    world = World()
    change(world, (PAIR, {WRITE: 1, READ: 2}), (DEFAULT, {TIME: 3}))
    builder = Builder()
    for part in capture(world.state).parts():
        builder.add(part)
    assert builder.state.cluster.access == world.state.cluster.access
