"""What `strandline broker label` asks of a cluster, and what it says.

Source: docs/decisions/0015-labels-at-run-time.md."""

import json

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster

from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_broker_labels import (
    AlterBrokerLabelsRequest,
    AlterBrokerLabelsResponse,
    AlteredBroker,
    AlteredLabel,
    AlteredTopic,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyResponse,
    TopologyBroker,
    TopologyLabel,
)
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

SOUTH = [TopologyLabel("region", "south"), TopologyLabel("disk", "ssd")]


class Brokers:
    """The cluster's answers. Broker 2 is registered by a version that tells nothing apart."""

    def __init__(self, fake: FakeCluster) -> None:
        self.asked: list[AlterBrokerLabelsRequest] = []
        self.answer = AlterBrokerLabelsResponse(
            brokers=[AlteredBroker(1, [AlteredLabel("region", "south")])]
        )
        fake.extra = {"AlterBrokerLabels": self._alter, "DescribeTopology": self._topology}

    def _alter(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, AlterBrokerLabelsRequest) and broker == fake.controller
        self.asked.append(request)
        return self.answer

    def _topology(self, _: FakeCluster, asked: int, __: Message) -> Message:
        configured = [TopologyLabel("region", "west"), TopologyLabel("rack", "r1")]
        return DescribeTopologyResponse(
            broker_id=asked,
            brokers=[
                TopologyBroker(1, True, -1, SOUTH, configured),
                TopologyBroker(2, False, -1, SOUTH[:1], None),
                TopologyBroker(3, True, -1, [], []),
            ],
        )


@pytest.fixture
def brokers(cluster: FakeCluster) -> Brokers:
    """Three brokers."""
    return Brokers(cluster)


def test_labels_are_shown_with_what_the_configuration_says(run: Run, brokers: Brokers) -> None:
    code, out, _ = run("broker", "label")
    assert code == 0 and out.splitlines() == [
        "BROKER  LABELS                 CHANGED AT RUN TIME",
        "     1  region=south disk=ssd  "
        "region=south (configured: west), disk=ssd (configured: none), no rack (r1)",
        "     2  region=south           -",
        "     3  -                      -",
    ]
    told = json.loads(run("broker", "label", "2,1", "--json")[1])
    assert told == [
        {
            "id": 1,
            "labels": {"region": "south", "disk": "ssd"},
            "configured": {"region": "west", "rack": "r1"},
        },
        {"id": 2, "labels": {"region": "south"}, "configured": None},
    ]
    assert run("broker", "label", "9") == (1, "", "error: no broker 9 in this cluster\n")
    assert brokers.asked == []


def test_brokers_of_an_older_version_are_shown_as_they_are(
    run: Run, brokers: Brokers, cluster: FakeCluster
) -> None:
    cluster.max_versions = {20_000: 0}
    assert run("broker", "label", "1")[1].splitlines()[1].split() == [
        "1", "region=south", "disk=ssd", "-",
    ]  # fmt: skip


def test_labels_are_set_and_taken_off_of_all_that_are_named(run: Run, brokers: Brokers) -> None:
    assert run("broker", "label", "1", "region=south") == (0, "broker 1 has region=south\n", "")
    (asked,) = brokers.asked
    assert (asked.broker_ids, asked.is_forced, asked.validate_only) == ([1], False, False)
    run("broker", "label", "1,3", "disk=a=b", "rack-", "on-", "--force", "--dry-run")
    asked = brokers.asked[-1]
    assert [(one.name, one.value) for one in asked.changes] == [
        ("disk", "a=b"), ("rack", None), ("on", None),
    ]  # fmt: skip
    assert (asked.broker_ids, asked.is_forced, asked.validate_only) == ([1, 3], True, True)


def test_what_moves_and_what_stood_against_it_is_told(run: Run, brokers: Brokers) -> None:
    brokers.answer.moves = [AlteredTopic("orders", 7, [0, 2]), AlteredTopic("trips", 1, [3])]
    brokers.answer.objections = ["placement.policy of topic orders could not be met any more"]
    assert run("broker", "label", "1", "region=south", "--force")[1].splitlines() == [
        "broker 1 has region=south",
        "objection: placement.policy of topic orders could not be met any more",
        "topic orders: 7 partitions are against the policy: 0,2,...",
        "topic trips: 1 partition is against the policy: 3",
        (
            "replicas move automatically where that improves anything; see `strandline "
            "cluster balance`"
        ),
    ]
    lines = run("broker", "label", "1", "region=south", "--dry-run")[1].splitlines()
    assert lines[0] == "broker 1 would have region=south"
    assert lines[3] == "topic trips: 1 partition would be against the policy: 3"
    told = "replicas would move automatically where that improves anything"
    assert lines[4:] == [told, "nothing changed"]
    brokers.answer.objections = []
    assert "replicas move automatically; see" in run("broker", "label", "1", "region=south")[1]
    found = json.loads(run("broker", "label", "1", "region=south", "--json")[1])
    assert found["changed"] is True
    assert found["brokers"] == [{"id": 1, "labels": {"region": "south"}}]
    assert found["moves"][0] == {"topic": "orders", "partitions": 7, "examples": [0, 2]}
    assert found["objections"] == []


def test_what_is_refused_is_told_with_the_reason(run: Run, brokers: Brokers) -> None:
    brokers.answer = AlterBrokerLabelsResponse(
        error_code=Error.POLICY_VIOLATION, error_message="topic orders needs it"
    )
    assert run("broker", "label", "1", "region-") == (
        1, "", (
            "error: broker 1: topic orders needs it (POLICY_VIOLATION)\n"
            "  to change the labels all the same, add --force\n"
        ),
    )  # fmt: skip
    brokers.answer = AlterBrokerLabelsResponse(error_code=Error.INVALID_REQUEST)
    assert "--force" not in run("broker", "label", "1", "region-")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("1", "region"), "'region' is not a label change: write rack=r12"),
        (("1", "rack=a", "rack-"), "label rack is given twice"),
        (("one", "rack=a"), "'one' is not a list of broker IDs"),
        (("rack=a",), "'rack=a' is not a list of broker IDs"),
        (("1", "--dry-run"), "no labels to change"),
    ],
)
def test_what_makes_no_sense_is_not_asked(
    run: Run, brokers: Brokers, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = run("broker", "label", *arguments)
    assert code == 1 and says in err
    assert brokers.asked == []


def test_a_label_that_is_almost_a_known_one_is_asked_about(run: Run, brokers: Brokers) -> None:
    for change, meant in (("regoin=west", "region"), ("dsik=hdd", "disk")):
        code, out, err = run("broker", "label", "3", change)
        name = change.partition("=")[0]
        assert (code, out, brokers.asked) == (1, "", [])
        assert err == (
            f"error: no broker has a label '{name}': did you mean {meant}? To set it all the same, "
            "add --force\n"
        )
    assert run("broker", "label", "3", "team=blue")[0] == 0
    assert run("broker", "label", "3", "regoin=west", "--force")[0] == 0
    assert [one.changes[0].name for one in brokers.asked] == ["team", "regoin"]


def test_a_controller_of_an_older_version_is_named(
    run: Run, brokers: Brokers, cluster: FakeCluster
) -> None:
    cluster.max_versions = {20_004: -1}
    code, _, err = run("broker", "label", "1", "rack=a")
    assert code == 1 and "does not offer AlterBrokerLabels" in err
