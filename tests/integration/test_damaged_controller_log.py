"""A flipped byte in one broker's log of the controller: it starts, and has everything again."""

from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, wait_until

from strandline.records.batch import HEADER_BYTES, iterate_headers

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
BROKER = 2


def log_of(cluster: DevCluster) -> Path:
    """The first segment of the controller's log on the broker."""
    pattern = f"**/broker-{BROKER}/**/@controller.0/*.log"
    (segment, *_) = sorted(cluster.directory.glob(pattern))
    return segment


def create(cluster: DevCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(TIMEOUT_S)


def flip(segment: Path, batch: int) -> None:
    """One bit within the records of a batch."""
    data = bytearray(segment.read_bytes())
    batches = (one for one in iterate_headers(bytes(data)) if not one.is_marker)
    damaged = next(islice(batches, batch, None))  # Zeros lie behind the last one.
    data[damaged.position + HEADER_BYTES + 20] ^= 1
    segment.write_bytes(data)


def stop_sound(cluster: DevCluster) -> bool:
    """Stop the cluster in order; whether the log is sound then."""
    cluster.dev("stop")
    directory = log_of(cluster).parent
    return cluster.run("log", "verify", str(directory), check=False).returncode == 0


def test_a_broker_starts_with_a_damaged_controllers_log(
    own_cluster: DevCluster, topic_name: str
) -> None:
    create(own_cluster, f"{topic_name}-a")
    segment = log_of(own_cluster)
    flushed = segment.with_suffix(".flushed")
    wait_until(flushed.exists, what="it is noted what is durable")
    create(own_cluster, f"{topic_name}-b")
    own_cluster.kill(BROKER)
    flip(segment, 1)
    own_cluster.start(BROKER)
    create(own_cluster, f"{topic_name}-c")
    assert stop_sound(own_cluster)
    flip(segment, 1)  # Not read when it is opened, since it was closed in order.
    own_cluster.start_all()
    create(own_cluster, f"{topic_name}-d")
    assert stop_sound(own_cluster)
    own_cluster.start_all()
