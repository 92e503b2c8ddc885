"""An epoch that was changed on one disk is not passed on to sound replicas.

Source: `tests/storage/test_covered_epochs.py`, for the log by itself."""

from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_damaged_logs import FIRST_SEGMENT, VALUES

from strandline.model.ids import BrokerId
from strandline.records.batch import BatchHeader, iterate_headers
from strandline.simulation.disk.file_image import FileImage

LOWEST_BYTE_OF_EPOCH = 15


def elect(cluster: ClusterWorld, *, away: int = 0) -> int:
    """Have another broker lead, in a new epoch; which."""
    leader = cluster.leader_of("t")
    transfer_target = next(one for one in (1, 2, 3) if one not in (away, leader))
    cluster.replicas_of("t")[leader].transfer_leadership(BrokerId(transfer_target))
    cluster.until(lambda: cluster.leader_of("t") == transfer_target)
    assert produce(cluster, "t", b"by %d" % transfer_target).error_code == 0
    return transfer_target


def last_epoch(cluster: ClusterWorld) -> int:
    return cluster.replicas_of("t")[cluster.leader_of("t")].log.last_epoch


def are_of_one_length(cluster: ClusterWorld) -> bool:
    logs = [one.log for one in cluster.replicas_of("t").values()]
    return len(logs) == 3 and len({log.last_index for log in logs}) == 1


def marker_of(cluster: ClusterWorld, broker: int, path: str, epoch: int) -> BatchHeader:
    """With which an epoch begins on a broker's disk."""
    image = cluster.hosts[broker].disk.tree.find(path)
    assert isinstance(image, FileImage)
    headers = iterate_headers(image.current.read(100_000, 0))
    found = next(one for one in headers if one.partition_leader_epoch == epoch)
    assert found.is_marker
    return found


def test_an_epoch_that_has_changed_is_not_handed_on(cluster: ClusterWorld) -> None:
    """With its lowest bit flipped, an odd epoch is the one before: that follows, too."""
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    while last_epoch(cluster) % 2:
        elect(cluster)
    away = cluster.leader_of("t")
    replicas = cluster.replicas_of("t").values()
    cluster.until(lambda: all(one.high_watermark == one.log.end_offset for one in replicas))
    cluster.hosts[away].kill()
    cluster.until(lambda: cluster.leader_of("t") not in (0, away))
    while last_epoch(cluster) % 2 == 0:
        elect(cluster, away=away)
    damaged = next(one for one in (1, 2, 3) if one not in (away, cluster.leader_of("t")))
    assert produce(cluster, "t", b"more").error_code == 0
    cluster.advance(20_000)  # What is there is flushed, and marked.
    log = cluster.replicas_of("t")[damaged].log
    epochs, path = list(log.epochs), f"{log.directory}/{FIRST_SEGMENT}"
    cluster.hosts[damaged].kill()
    marker = marker_of(cluster, damaged, path, epochs[-1][0])
    cluster.hosts[damaged].disk.rot(path, (marker.position + LOWEST_BYTE_OF_EPOCH) * 8)
    cluster.hosts[damaged].start()
    cluster.until_started(damaged)
    cluster.hosts[away].start()
    cluster.until_started(away)
    # Its log is copied anew, from before the damage on.
    cluster.until(lambda: are_of_one_length(cluster))
    logs = {broker: list(one.log.epochs) for broker, one in cluster.replicas_of("t").items()}
    assert all(one[: len(epochs)] == epochs for one in logs.values()), logs
