"""A real broker that gets damaged frames over its port; its memory is watched.

How:    each round opens some connections, sends frames on each without waiting, reads what comes
        for a moment, and hangs up. After each round another connection asks for metadata: the
        broker has to answer. Requests that create topics, move or remove replicas, or cut a broker
        off are sent only damaged beyond their header, so that the cluster stays the same."""

import socket
import struct
from random import Random

from bench.clusters import Cluster, memory_mb

from fuzz import samples
from fuzz.mutations import damaged
from strandline.protocol.apis import API_KEYS, APIS, OWN_APIS_FROM
from strandline.protocol.headers import encode_request
from strandline.protocol.messages.metadata import MetadataRequest

CONNECTIONS = 4
FRAMES = 25
PATIENCE_S = 10.0
PAUSE_S = 0.05
GROWTH_MB_MAX = 64.0
WARM_UP_ROUNDS = 100
CHANGING = frozenset(
    API_KEYS[name]
    for name in (
        "AlterPartitionReassignments",
        "CreatePartitions",
        "CreateTopics",
        "DeleteTopics",
        "ElectLeaders",
        "UnregisterBroker",
    )
)
"""APIs whose requests change the cluster; those of our own are left out as well."""
SENT = [api for api in APIS.values() if api.key < OWN_APIS_FROM and api.key not in CHANGING]


class BrokerTarget:
    """The broker of a cluster of one."""

    def __init__(self, cluster: Cluster) -> None:
        host, _, port = cluster.bootstrap.partition(",")[0].rpartition(":")
        self._address = (host, int(port))
        ((_, self._pid),) = cluster.pids.items()
        self._rounds = 0
        self._memory_mb = 0.0

    def round(self, random: Random) -> None:
        """Send frames, then ask whether the broker serves. Raises AssertionError for a finding."""
        for _ in range(CONNECTIONS):
            self._send([self._frame(random) for _ in range(FRAMES)])
        self._require_service()
        self._rounds += 1
        if self._rounds == WARM_UP_ROUNDS:
            self._memory_mb = memory_mb(self._pid)
        elif self._rounds > WARM_UP_ROUNDS and self._rounds % WARM_UP_ROUNDS == 0:
            grown = memory_mb(self._pid) - self._memory_mb
            assert grown <= GROWTH_MB_MAX, f"the broker has {grown:.0f} MB more than at first"

    def _frame(self, random: Random) -> bytes:
        whole = samples.request(random, random.choice(SENT))
        return damaged(whole, random) if random.random() < 0.7 else whole

    def _send(self, frames: list[bytes]) -> None:
        """One connection; that the broker hangs up is an answer."""
        with socket.create_connection(self._address, timeout=PATIENCE_S) as connection:
            try:
                for frame in frames:
                    connection.sendall(struct.pack(">i", len(frame)) + frame)
                connection.settimeout(PAUSE_S)
                while connection.recv(1 << 16):
                    pass
            except (ConnectionError, TimeoutError):
                return

    def _require_service(self) -> None:
        frame = encode_request(MetadataRequest(topics=[]), 9, correlation_id=7, client_id="fuzz")
        try:
            with socket.create_connection(self._address, timeout=PATIENCE_S) as connection:
                connection.sendall(struct.pack(">i", len(frame)) + frame)
                answer = connection.recv(8)
        except OSError as error:
            raise AssertionError(f"the broker does not serve: {error}") from error
        assert answer[4:8] == struct.pack(">i", 7), "the broker gave another connection's answer"
