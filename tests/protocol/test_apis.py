"""The list of APIs: one row each, from the tables themselves."""

import subprocess
import sys

import pytest

from strandline.protocol.apis import APIS
from strandline.protocol.codec import decode, encode
from strandline.protocol.messages.describe_balance import (
    BalanceMove,
    CopyRate,
    CopyShare,
    DescribeBalanceResponse,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyResponse,
    TopologyBroker,
    TopologyLabel,
)

EXPECTED = {
    0: ("Produce", 3, 13, 9),
    1: ("Fetch", 4, 18, 12),
    2: ("ListOffsets", 1, 11, 6),
    3: ("Metadata", 0, 13, 9),
    8: ("OffsetCommit", 2, 10, 8),
    9: ("OffsetFetch", 1, 10, 6),
    10: ("FindCoordinator", 0, 6, 3),
    11: ("JoinGroup", 0, 9, 6),
    12: ("Heartbeat", 0, 4, 4),
    17: ("SaslHandshake", 0, 1, None),
    36: ("SaslAuthenticate", 0, 2, 2),
    51: ("AlterUserScramCredentials", 0, 0, 0),
    13: ("LeaveGroup", 0, 5, 4),
    14: ("SyncGroup", 0, 5, 4),
    15: ("DescribeGroups", 0, 6, 5),
    16: ("ListGroups", 0, 5, 3),
    18: ("ApiVersions", 0, 5, 3),
    19: ("CreateTopics", 2, 7, 5),
    20: ("DeleteTopics", 1, 6, 4),
    21: ("DeleteRecords", 0, 2, 2),
    22: ("InitProducerId", 0, 6, 2),
    23: ("OffsetForLeaderEpoch", 2, 4, 4),
    29: ("DescribeAcls", 1, 3, 2),
    30: ("CreateAcls", 1, 3, 2),
    31: ("DeleteAcls", 1, 3, 2),
    32: ("DescribeConfigs", 1, 4, 4),
    33: ("AlterConfigs", 0, 2, 2),
    34: ("AlterReplicaLogDirs", 1, 2, 2),
    35: ("DescribeLogDirs", 1, 5, 2),
    37: ("CreatePartitions", 0, 3, 2),
    38: ("CreateDelegationToken", 1, 3, 2),
    39: ("RenewDelegationToken", 1, 2, 2),
    40: ("ExpireDelegationToken", 1, 2, 2),
    41: ("DescribeDelegationToken", 1, 3, 2),
    42: ("DeleteGroups", 0, 3, 2),
    43: ("ElectLeaders", 0, 2, 2),
    44: ("IncrementalAlterConfigs", 0, 1, 1),
    45: ("AlterPartitionReassignments", 0, 1, 0),
    46: ("ListPartitionReassignments", 0, 0, 0),
    47: ("OffsetDelete", 0, 0, None),
    48: ("DescribeClientQuotas", 0, 1, 1),
    49: ("AlterClientQuotas", 0, 1, 1),
    50: ("DescribeUserScramCredentials", 0, 0, 0),
    55: ("DescribeQuorum", 0, 2, 0),
    57: ("UpdateFeatures", 0, 2, 0),
    60: ("DescribeCluster", 0, 2, 0),
    61: ("DescribeProducers", 0, 0, 0),
    64: ("UnregisterBroker", 0, 0, 0),
    74: ("ListConfigResources", 0, 1, 0),
    75: ("DescribeTopicPartitions", 0, 0, 0),
    20_000: ("DescribeTopology", 0, 1, 0),
    20_001: ("DescribeBalance", 0, 2, 0),
    20_002: ("DescribeWriters", 0, 0, 0),
    20_003: ("DescribeLeadership", 0, 0, 0),
    20_004: ("AlterBrokerLabels", 0, 0, 0),
    20_005: ("DescribeObservers", 0, 0, 0),
    20_006: ("DescribeReplicaStatus", 0, 0, 0),
    20_007: ("IsolateBroker", 0, 1, 0),
    20_008: ("DescribeZones", 0, 0, 0),
    20_009: ("RuleZone", 0, 0, 0),
    20_013: ("DescribeReplicaLogs", 0, 0, 0),
    20_014: ("DeclareLost", 0, 0, 0),
    20_015: ("DescribeLosses", 0, 1, 0),
    20_016: ("DescribeStatus", 0, 0, 0),
    20_017: ("DigestReplica", 0, 0, 0),
    20_018: ("DescribeTier", 0, 0, 0),
    20_019: ("DescribeExports", 0, 0, 0),
    20_020: ("DescribeReadReplicas", 0, 0, 0),
    20_021: ("RecoverPartition", 0, 0, 0),
    20_022: ("IdentifyBucket", 0, 0, 0),
    20_023: ("RepairObject", 0, 0, 0),
}
"""{key: (name, first version, last version, first flexible version)} of Kafka 4.4, and ours."""


def test_the_versions_are_those_of_kafka() -> None:
    found = {
        key: (api.name, api.min_version, api.max_version, api.flexible_from)
        for key, api in APIS.items()
    }
    assert found == EXPECTED
    assert list(APIS) == sorted(APIS)


ADVERTISED = {"Produce": 0}
SERVED = {"SaslHandshake": 1}


def test_few_apis_are_advertised_otherwise_than_they_are_spoken() -> None:
    for api in APIS.values():
        assert api.advertised_min == ADVERTISED.get(api.name, api.min_version)
        assert api.served_min == SERVED.get(api.name, api.min_version)
    assert [version for version in range(20) if APIS[0].supports(version)] == [*range(3, 14)]


def test_an_api_is_flexible_from_its_first_flexible_version_on() -> None:
    assert [version for version in range(20) if APIS[0].is_flexible(version)] == [*range(9, 20)]
    never = next(api for api in APIS.values() if api.flexible_from is None)
    assert not any(map(never.is_flexible, range(20)))


@pytest.mark.parametrize("key", sorted(APIS))
def test_a_message_of_defaults_can_be_sent_in_every_version(key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        for cls in (api.request, api.response):
            written = encode(cls(), version)
            assert decode(cls, written, 0, version) == (cls(), len(written))


def test_what_a_later_version_tells_takes_no_bytes_in_the_first() -> None:
    rates = [CopyRate("all", 1_000, [CopyShare(1, 500)])]
    told = DescribeBalanceResponse(moves_max=3, rates=rates)
    assert encode(told, 0) == encode(DescribeBalanceResponse(moves_max=3), 0)
    assert decode(DescribeBalanceResponse, encode(told, 1), 0, 1)[0] == told
    move = BalanceMove(topic="t", text="disk of broker 3 is 91 % full, 80 is wanted", log_bytes=9)
    moves = DescribeBalanceResponse(moves=[move])
    without = DescribeBalanceResponse(moves=[BalanceMove(topic="t")])
    assert encode(moves, 1) == encode(without, 1)
    assert decode(DescribeBalanceResponse, encode(moves, 2), 0, 2)[0] == moves
    broker = TopologyBroker(broker_id=1, configured=[TopologyLabel("rack", "r1")])
    topology = DescribeTopologyResponse(brokers=[broker])
    bare = DescribeTopologyResponse(brokers=[TopologyBroker(broker_id=1)])
    assert encode(topology, 0) == encode(bare, 0)
    assert decode(DescribeTopologyResponse, encode(topology, 1), 0, 1)[0] == topology


def test_importing_the_tables_compiles_no_codec() -> None:
    program = (
        "import strandline.protocol.apis, sys;"
        "from strandline.protocol import table;"
        "assert table.columns.cache_info().currsize == 0;"
        "assert not {'asyncio', 'logging', 'socket', 'random'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
