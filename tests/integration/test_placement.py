"""Topics placed by what must survive and led where it is preferred, on real brokers, with the
commands and clients that people use."""

import json
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import metadata_of, partitions_of
from tests.integration.placed_load import regions_of

pytestmark = pytest.mark.integration

TIMEOUT_S = 40


def test_a_policy_in_a_file_places_the_topic_or_says_why_not(
    cluster: DevCluster, topic_name: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("# one region may go\nsurvive:\n  - region\n")
    made = cluster.run(
        "topic", "create", topic_name, "-p", "6", "--policy", str(file),
        "-b", cluster.bootstrap, "--json",
    )  # fmt: skip
    assert json.loads(made.stdout)["topics"][0]["replicas"] == 3
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert all(len(set(regions)) == 3 for regions in regions_of(admin, topic_name))

    file.write_text("survive: [2 regions]\n")
    refused = cluster.run(
        "topic", "create", f"{topic_name}-2", "--policy", str(file), "-b", cluster.bootstrap,
        check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    first, *rest = refused.stderr.splitlines()
    assert "placement.policy" in first and any("would be possible" in line for line in rest)
    assert f"{topic_name}-2" not in metadata_of(admin).topics

    file.write_text("survive: [regoin]\n")
    refused = cluster.run(
        "topic", "create", f"{topic_name}-3", "--policy", str(file), "-b", cluster.bootstrap,
        check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert str(file) in refused.stderr and len(refused.stderr.splitlines()) == 1


def test_confluents_constraints_place_a_topic_of_another_client(
    cluster: DevCluster, topic_name: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    racks = sorted({node.rack for node in admin.describe_cluster().result(TIMEOUT_S).nodes})
    replicas = [{"count": 1, "constraints": {"rack": rack}} for rack in racks[:2]]
    constraints = json.dumps({"version": 2, "replicas": replicas})
    config = {"confluent.placement.constraints": constraints}
    wanted = NewTopic(topic_name, 4, replication_factor=-1, config=config)
    admin.create_topics([wanted])[topic_name].result(TIMEOUT_S)
    assert regions_of(admin, topic_name) == {tuple(racks[:2])}

    wanted = NewTopic(f"{topic_name}-2", 4, replication_factor=3, config=config)
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([wanted])[f"{topic_name}-2"].result(TIMEOUT_S)
    error = failure.value.args[0]
    assert error.code() == KafkaError.INVALID_REPLICATION_FACTOR
    assert "Both cannot be used at the same time" in error.str()


def test_redpandas_leader_preference_places_the_leaders_of_another_client(
    cluster: DevCluster, topic_name: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    racks = {node.id: node.rack for node in admin.describe_cluster().result(TIMEOUT_S).nodes}
    last = max(racks.values())
    config = {"redpanda.leaders.preference": f"ordered_racks:{last},{min(racks.values())}"}
    wanted = NewTopic(topic_name, 4, replication_factor=3, config=config)
    admin.create_topics([wanted])[topic_name].result(TIMEOUT_S)
    placed = partitions_of(admin, topic_name).values()
    assert {racks[one.replicas[0]] for one in placed} == {last}
    assert all(len({racks[broker] for broker in one.replicas}) == 3 for one in placed)

    config = {"redpanda.leaders.preference": "racks:"}
    wanted = NewTopic(f"{topic_name}-2", 4, replication_factor=3, config=config)
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([wanted])[f"{topic_name}-2"].result(TIMEOUT_S)
    assert "redpanda.leaders.preference: a rack must not be empty" in failure.value.args[0].str()


def test_a_broker_that_returns_leads_again_when_an_administrator_asks(
    own_cluster: DevCluster, topic_name: str
) -> None:
    admin = AdminClient({"bootstrap.servers": own_cluster.bootstrap})
    wanted = NewTopic(topic_name, num_partitions=3, replication_factor=3)
    admin.create_topics([wanted])[topic_name].result(TIMEOUT_S)

    def led() -> dict[int, tuple[int, int]]:
        """{partition: (leader, preferred leader)}"""
        found = partitions_of(admin, topic_name)
        return {index: (one.leader, one.replicas[0]) for index, one in found.items()}

    wait_until(lambda: all(a == b for a, b in led().values()), what="the preferred leaders")
    victim = led()[0][0]
    own_cluster.kill(victim)
    wait_until(lambda: led()[0][0] not in (-1, victim), what="another leader")
    own_cluster.start(victim)
    partition = TopicPartition(topic_name, 0)

    def elected() -> bool:
        asked = admin.elect_leaders(ElectionType.PREFERRED, [partition])
        error = asked.result(TIMEOUT_S)[partition]
        return error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED

    wait_until(elected, what="the broker to be in sync")
    # The broker that is asked may hear of it after the one that was asked to elect.
    wait_until(lambda: led()[0] == (victim, victim), what="the broker to lead")
