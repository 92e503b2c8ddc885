"""`strandline quota`, and quotas that a restore brings back, on a cluster in memory."""

import json
from typing import cast

import pytest
from tests.cli.command_line import Run, run
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import ApiError
from strandline.cli.commands import quota
from strandline.client.cluster import Client
from strandline.client.restore.plan import RestorePlan
from strandline.client.restore.quotas import restore_quotas
from strandline.model.access import QuotaEntity
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntity,
)
from strandline.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from strandline.protocol.table import Message
from strandline.security.quotas.entities import entity_of
from strandline.security.quotas.entity_filter import Condition, fits

__all__ = ["run"]  # The fixture.


class Quotas:
    """What a cluster has, and the error that it answers with."""

    def __init__(self) -> None:
        self.present: dict[QuotaEntity, dict[str, float]] = {}
        self.code = 0
        self.fake = FakeCluster()
        self.fake.extra["AlterClientQuotas"] = self._alter
        self.fake.extra["DescribeClientQuotas"] = self._describe

    def client(self) -> Client:
        return Client(self.fake.bootstrap, timeout_ms=5_000, transport=FakeTransport(self.fake))

    def _alter(self, _: FakeCluster, __: int, request: Message) -> Message:
        asked = cast("AlterClientQuotasRequest", request)
        for entry in asked.entries if not self.code else ():
            entity = entity_of([(one.entity_type, one.entity_name) for one in entry.entity])
            values = self.present.setdefault(entity, {})
            for one in entry.ops:
                values.pop(one.key, None)
                if not one.remove:
                    values[one.key] = one.value
        return AlterClientQuotasResponse(
            entries=[AlteredEntity(self.code, "so it is", one.entity) for one in asked.entries]
        )

    def _describe(self, _: FakeCluster, __: int, request: Message) -> Message:
        asked = cast("DescribeClientQuotasRequest", request)
        conditions = [Condition(*(one.entity_type, one.match_type, one.match))
                      for one in asked.components]  # fmt: skip
        return DescribeClientQuotasResponse(
            entries=[
                EntryData(
                    [EntityData(*one) for one in entity],
                    [ValueData(*one) for one in values.items()],
                )
                for entity, values in self.present.items()
                if values and fits(entity, conditions, is_strict=asked.strict)
            ]
        )


@pytest.fixture
def quotas(monkeypatch: pytest.MonkeyPatch) -> Quotas:
    made = Quotas()
    monkeypatch.setattr(quota, "open_client", lambda bootstrap, timeout: made.client())
    return made


def test_quotas_are_set_listed_and_deleted(run: Run, quotas: Quotas) -> None:
    two = ("producer_byte_rate=1000", "request_percentage=2.5")
    code, out, _ = run("quota", "set", *two, "--user", "mia")
    told = "user mia: producer_byte_rate=1000, request_percentage=2.5 on each broker\n"
    assert (code, out) == (0, told)
    assert run("quota", "set", "consumer_byte_rate=7", "--default-user", "--client-id", "c")[0] == 0
    assert run("quota", "list")[1].splitlines() == [
        "ENTITY                       QUOTA               VALUE",
        "client-id c, user <default>  consumer_byte_rate  7",
        "user mia                     producer_byte_rate  1000",
        "user mia                     request_percentage  2.5",
        "3 quotas",
    ]
    (row,) = json.loads(run("quota", "list", "--client-id", "c", "--json")[1])
    assert row == {
        "entity": [{"type": "client-id", "name": "c"}, {"type": "user", "name": None}],
        "quota": "consumer_byte_rate",
        "value": 7.0,
    }
    code, out, _ = run("quota", "delete", "producer_byte_rate", "--user", "mia")
    assert (code, out) == (0, "user mia: producer_byte_rate removed\n")
    assert quotas.present[(("user", "mia"),)] == {"request_percentage": 2.5}
    assert run("quota", "delete", "--user", "mia")[0] == 0
    assert run("quota", "list", "--user", "mia")[1] == "0 quotas\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("set", "x=1", "--user", "mia"), "there is no quota 'x': use producer_byte_rate, "),
        (("set", "producer_byte_rate=0", "--user", "mia"), "NUMBER, above 0"),
        (("set", "producer_byte_rate", "--user", "mia"), "NUMBER, above 0"),
        (("set", "producer_byte_rate=1.5", "--user", "mia"), "must be a whole number"),
        (("set", "producer_byte_rate=1"), "say whose quotas: --user"),
        (("set", "producer_byte_rate=1", "--user", "a", "--default-user"), "exclude each other"),
        (("delete", "--user", "mia"), "user mia has no quotas: `strandline quota list`"),
    ],
)
def test_bad_input_has_one_line(
    run: Run, quotas: Quotas, words: tuple[str, ...], told: str
) -> None:
    code, out, err = run("quota", *words)
    assert (code, out) == (1, "")
    assert told in err
    assert err.count("\n") == 1
    assert not quotas.present


def test_a_refusal_names_the_entity_and_the_reason(run: Run, quotas: Quotas) -> None:
    quotas.code = Error.POLICY_VIOLATION
    code, _, err = run("quota", "set", "producer_byte_rate=1", "--default-client-id")
    assert code == 1
    assert "the quotas of client-id <default>" in err
    assert "so it is" in err


def test_a_restore_brings_quotas_back_and_leaves_out_what_the_cluster_does_not_know() -> None:
    quotas, said = Quotas(), []
    wanted = {(("user", f"u{number}"),): {"producer_byte_rate": 5.0} for number in range(1_500)}
    plan = cast("RestorePlan", type("Plan", (), {"quotas": wanted})())
    restore_quotas(quotas.client(), plan, say=said.append)
    assert quotas.present == wanted
    assert said == ["quotas of 1500 users and client ids are back"]
    quotas.code, said[:] = Error.INVALID_REQUEST, ()
    restore_quotas(quotas.client(), plan, say=said.append)
    assert "left out" in said[0]
    assert said[-1] == "all others of 1500 users and client ids are back"
    quotas.code = Error.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(ApiError):
        restore_quotas(quotas.client(), plan, say=said.append)
