"""A policy that names what no broker has is taken, and its commands say so: on a cluster in memory
(decision 0008)."""

import json
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import FROM_TOPIC, Lines, World, told, world
from tests.client.fake_cluster import FakeCluster

from strandline.cli.commands import cluster_alter
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.table import Message

__all__ = ["run", "told", "world"]

SOUT = "no broker has region=sout; brokers have east, south, west (did you mean south?)"
NORTH = "no broker has region=north; brokers have east, south, west"
DENY = "residency: {deny: [{label: region, op: in, values: [sout]}]}"
IN_SOUT = "rules: [{count: 2, where: [{label: region, op: in, values: [sout]}]}]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(DENY)
    return path


@pytest.fixture(autouse=True)
def takes_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def alter(_: FakeCluster, __: int, request: Message) -> Message:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        (one,) = request.resources
        row = AlterConfigsResourceResponse(0, None, one.resource_type, one.resource_name)
        return IncrementalAlterConfigsResponse(responses=[row])

    world.fake.extra["IncrementalAlterConfigs"] = alter
    monkeypatch.setattr(cluster_alter, "open_client", world.open_client)


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("policy", "test", "FILE"), SOUT),
        (("policy", "test", "FILE", "--cluster", "CLUSTER"), SOUT),
        (("topic", "create", "new", "-p", "2", "--policy", "FILE"), SOUT),
        (("topic", "create", "new", "-c", "redpanda.leaders.preference=racks:north"), NORTH),
        (("topic", "alter", "t", "--policy", "FILE"), SOUT),
        (("topic", "alter", "t", "-c", "redpanda.leaders.preference=racks:east,north"), NORTH),
        (("cluster", "alter", "-c", "default_leaders_preference=racks:north"), NORTH),
        (("topic", "explain", "t"), SOUT),
    ],
)
def test_what_nobody_has_is_noted_and_stops_nothing(
    world: World, told: Lines, file: Path, arguments: tuple[str, ...], note: str
) -> None:
    described = file.parent / "cluster.yaml"
    described.write_text("brokers: [{region: east}, {region: south}, {region: west}]")
    names = {"FILE": str(file), "CLUSTER": str(described)}
    words = [names.get(one, one) for one in arguments]
    world.policy = (DENY, FROM_TOPIC)
    assert f"note: {note}" in told(*words)
    world.created.clear()
    assert json.loads("".join(told(*words, "--json")))["notes"] == [note]


def test_what_is_known_is_not_noted(world: World, told: Lines, file: Path) -> None:
    file.write_text(DENY.replace("sout", "south"))
    for words in (("policy", "test", str(file)), ("topic", "alter", "t", "--policy", str(file))):
        assert not any(line.startswith("note:") for line in told(*words))


@pytest.mark.parametrize("more", [(), ("--cluster", "CLUSTER")])
def test_a_refusal_ends_with_it(world: World, run: Run, file: Path, more: tuple[str, ...]) -> None:
    described = file.parent / "cluster.yaml"
    described.write_text("brokers: [{region: east}, {region: south}, {region: west}]")
    file.write_text(IN_SOUT)
    words = [str(described) if one == "CLUSTER" else one for one in more]
    code, out, err = run("policy", "test", str(file), *words)
    assert (code, out) == (1, "")
    assert err.endswith(f"\n  {SOUT}\n")
