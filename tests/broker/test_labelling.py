"""Labels of running brokers change on every broker at once, and survive restarts.

Source: docs/decisions/0015-labels-at-run-time.md."""

import logging
from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined

from strandline.broker.operations.labelling import OwnLabels
from strandline.model.cluster import Address, Broker, Labels, StoredLabels
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.messages.alter_broker_labels import (
    AlterBrokerLabelsRequest,
    AlterBrokerLabelsResponse,
    AlteredBroker,
    AlteredLabel,
    AlteredTopic,
    LabelChange,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

REGIONS = {1: "east", 2: "west", 3: "south", 4: "south"}
POLICY_VIOLATION, NOT_REGISTERED = 44, 102
METADATA_VERSION = 9


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Four brokers in three regions; three of them are the controller's voters."""
    with joined(ClusterWorld(regions=REGIONS)) as world:
        yield world


def alter(
    world: ClusterWorld, *brokers: int, at: int = 2, force: bool = False, **labels: str | None
) -> AlterBrokerLabelsResponse:
    request = AlterBrokerLabelsRequest(
        list(brokers), [LabelChange(*one) for one in labels.items()], force
    )
    return world.ask(at, request, AlterBrokerLabelsResponse, 0)


def labels_of(world: ClusterWorld, broker: int, *, at: int) -> dict[str, str]:
    """As the broker `at` knows them."""
    return world.broker(at).controller.cluster.brokers[BrokerId(broker)].labels.as_dict()


def racks(world: ClusterWorld, at: int) -> dict[int, str | None]:
    answer = world.ask(at, MetadataRequest(topics=[]), MetadataResponse, METADATA_VERSION)
    return {one.node_id: one.rack for one in answer.brokers}


def test_they_are_in_force_on_every_broker_without_a_restart(cluster: ClusterWorld) -> None:
    cluster.create_topic("flights", replicas=4)
    lives = {one: cluster.hosts[one].start_count for one in cluster.hosts}
    assert alter(cluster, 4, region="west", disk="ssd") == AlterBrokerLabelsResponse(
        brokers=[AlteredBroker(4, [AlteredLabel("region", "west"), AlteredLabel("disk", "ssd")])]
    )
    wanted_labels = {"region": "west", "disk": "ssd"}
    cluster.until(lambda: all(labels_of(cluster, 4, at=one) == wanted_labels for one in REGIONS))
    assert {one: racks(cluster, one)[4] for one in REGIONS} == dict.fromkeys(REGIONS, "west")
    assert {one: cluster.hosts[one].start_count for one in cluster.hosts} == lives
    assert cluster.kept_labels[4] == StoredLabels(Labels.of(wanted_labels), Labels("south"))
    assert cluster.kept_labels[3] == StoredLabels(Labels("south"), Labels("south"))


def test_the_budget_between_regions_follows_them(cluster: ClusterWorld) -> None:
    """Of copies: brokers in another region than this one have a credit of their own."""

    def far(at: int) -> list[BrokerId]:
        throttle = cluster.broker(at).replication.throttle
        for one in REGIONS:
            throttle.admits((GroupId(99), BrokerId(one)), lambda: None, is_copy=True)
        return sorted(throttle.copying_to()[1])

    cluster.until(lambda: far(3) == [1, 2])
    assert alter(cluster, 3, region="east").error_code == 0
    cluster.until(lambda: far(3) == [2, 4] and far(4) == [1, 2, 3] and far(1) == [2, 4])


def test_who_is_preferred_as_a_leader_follows_them(cluster: ClusterWorld) -> None:
    where = '{"label": "region", "op": "in", "values": ["west"]}'
    policy = '{"rules": [{"count": 4}], "leaders": {"prefer": [[' + where + "]]}}"
    cluster.create_topic("flights", replicas=-1, configs=(("placement.policy", policy),))

    def ranks(at: int) -> dict[BrokerId, int]:
        return dict(cluster.replicas_of("flights")[at].election_priority.ranks)

    assert {one for one, rank in ranks(1).items() if rank == 0} == {2}
    assert alter(cluster, 4, region="west").error_code == 0
    cluster.until(
        lambda: all({o for o, rank in ranks(one).items() if rank == 0} == {2, 4} for one in REGIONS)
    )


def test_what_is_refused_says_why_and_what_is_forced_what_stood_against_it(
    cluster: ClusterWorld,
) -> None:
    answer = alter(cluster, 9, region="west")
    assert (answer.error_code, answer.error_message) == (NOT_REGISTERED, "there is no broker 9")
    cluster.create_topic("flights", replicas=-1, configs=(("placement.policy", "survive: region"),))
    assert alter(cluster, 4, region=None).error_code == POLICY_VIOLATION
    answer = alter(cluster, 3, 4, region="west", at=4)
    assert answer.error_code == POLICY_VIOLATION
    assert "placement.policy of topic flights" in str(answer.error_message)
    answer = alter(cluster, 3, 4, region="west", force=True)
    assert answer.error_code == 0 and len(answer.objections) == 1
    assert answer.moves == [AlteredTopic("flights", 1, [0])]


def test_they_stay_when_the_broker_starts_again_until_its_configuration_changes(
    cluster: ClusterWorld,
) -> None:
    assert alter(cluster, 4, region="west").error_code == 0
    cluster.lose_power_of(4, for_ms=1_000)
    assert labels_of(cluster, 4, at=4) == {"region": "west"}
    answer = cluster.ask(1, DescribeTopologyRequest(), DescribeTopologyResponse, 1)
    (four,) = (one for one in answer.brokers if one.broker_id == 4)
    assert [one.value for one in four.labels] == ["west"]
    assert [one.value for one in four.configured or []] == ["south"]
    cluster.regions[4] = "north"
    cluster.lose_power_of(4, for_ms=1_000)
    assert labels_of(cluster, 4, at=4) == {"region": "north"}
    assert cluster.kept_labels[4] == StoredLabels(Labels("north"), Labels("north"))


def test_labels_of_a_broker_that_is_down_wait_for_it(cluster: ClusterWorld) -> None:
    cluster.hosts[4].kill()
    cluster.advance(2_000)
    assert alter(cluster, 4, at=1, region="west").error_code == 0
    assert cluster.kept_labels[4].labels == Labels("south")
    cluster.hosts[4].start()
    cluster.until_started(4)
    assert labels_of(cluster, 4, at=4) == {"region": "west"}
    assert cluster.kept_labels[4] == StoredLabels(Labels("west"), Labels("south"))


def test_who_was_unregistered_joins_again_with_what_its_data_directory_keeps(
    cluster: ClusterWorld,
) -> None:
    assert alter(cluster, 4, region="west").error_code == 0
    cluster.until(lambda: cluster.kept_labels[4].labels == Labels("west"))
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    gone = cluster.ask(2, UnregisterBrokerRequest(4), UnregisterBrokerResponse, 0)
    assert gone.error_code == 0
    cluster.hosts[4].start()
    cluster.until_started(4)
    assert labels_of(cluster, 4, at=4) == {"region": "west"}


def test_they_are_as_they_were_after_the_whole_cluster_lost_power(cluster: ClusterWorld) -> None:
    assert alter(cluster, 1, 2, zone="z").error_code == 0
    cluster.lose_power()
    for one in (1, 2):
        assert labels_of(cluster, one, at=3) == {"region": REGIONS[one], "zone": "z"}


# ---- the broker's own part -----------------------------------------------------------------------


def own(labels: Labels, incarnation: str = "x") -> Broker:
    address = Address("h", 1)
    return Broker(BrokerId(1), incarnation, address, address, labels, Labels("east"))


def test_what_the_data_directory_keeps_is_registered_as_far_as_it_holds() -> None:
    kept = StoredLabels(Labels(region="west", rack="r2"), Labels(region="east", rack="r1"))
    assert OwnLabels(Labels("east"), None, None).present() == Labels("east")
    assert OwnLabels(Labels(region="east", rack="r1"), kept, None).present() == kept.labels
    present = OwnLabels(Labels(region="east", rack="r9"), kept, None).present()
    assert present == Labels(region="west", rack="r9")


def test_a_disk_that_is_full_costs_the_copy_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written: list[StoredLabels] = []
    is_full = True

    def keep(kept: StoredLabels) -> None:
        if is_full:
            raise OSError("no space left on device")
        written.append(kept)

    caplog.set_level(logging.INFO)
    labels = OwnLabels(Labels("east"), None, keep)
    labels.note(own(Labels("west")))
    assert "the configuration says region=east" in caplog.text
    assert "cannot store the labels" in caplog.text
    is_full = False
    labels.note(own(Labels("south")))
    labels.note(own(Labels("south")))  # Another record, nothing new.
    assert written == [StoredLabels(Labels("south"), Labels("east"))]
    assert "labels were changed to region=south" in caplog.text
