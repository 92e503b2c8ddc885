"""The cluster of a plan: described by a file, or as a running cluster describes itself.

Why:    a plan for tomorrow's cluster and one for today's are the same question.
How:    the file is that of `strandline policy test --cluster`; of a running cluster, labels and
        round trips are asked for. All brokers count as up: a plan begins with all well."""

from dataclasses import replace
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.client.access import Access, AccessTransport
from strandline.client.cluster import Client
from strandline.client.operations.topology import describe_topology
from strandline.client.rights import naming_right
from strandline.config.addresses import parse_bootstrap
from strandline.model.access import Kind, Operation
from strandline.placement.topology.described import DescribedCluster, decode_cluster
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate

TIMEOUT_MS = 30_000


def read_text(file: Path) -> str:
    """The text of a file; raises OperatorError with one line."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OperatorError(f"{file} is not UTF-8 text") from error
    except OSError as error:
        raise OperatorError(f"{file}: cannot read: {error.strerror}") from error


def cluster_of_file(file: Path) -> DescribedCluster:
    """The cluster that a file describes; raises OperatorError with one line."""
    return _all_up(decode_cluster(read_text(file), source=str(file)))


def cluster_of_brokers(bootstrap: str, access: Access | None = None) -> DescribedCluster:
    """The running cluster with these brokers; raises OperatorError or ClientError."""
    try:
        addresses = parse_bootstrap(bootstrap)
    except ValueError as error:
        raise OperatorError(f"--bootstrap {error}") from error
    transport = AccessTransport(access)
    with (
        Client(addresses, timeout_ms=TIMEOUT_MS, transport=transport) as client,
        naming_right(client, Operation.DESCRIBE, Kind.CLUSTER),
    ):
        topology = describe_topology(client)
    regions = {one.id: one.labels.region for one in topology.brokers}
    return DescribedCluster(
        tuple(Candidate(id=one.id, labels=one.labels) for one in topology.brokers),
        RoundTrips.measured(topology.round_trips_ms, regions),
    )


def _all_up(cluster: DescribedCluster) -> DescribedCluster:
    up = tuple(replace(one, state=BrokerState.ACTIVE) for one in cluster.candidates)
    return replace(cluster, candidates=up)
