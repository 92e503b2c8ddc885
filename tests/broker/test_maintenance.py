"""A broker in maintenance leads no partition that another can lead, and leads again afterwards.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_failback import preferred
from tests.controller.controller_world import changes

from strandline.controller.commands import AlterConfigs, ResourceResults
from strandline.controller.reports import Question
from strandline.model.ids import BrokerId

KEY = "broker.maintenance.until.ms"
BROKER, SET, DELETE = 4, 0, 1
DELAY_S = 5


def alter(world: ClusterWorld, broker: BrokerId | str, key: str, value: str | None) -> None:
    row = (key, DELETE if value is None else SET, value)
    world.submit(AlterConfigs((changes(BROKER, str(broker), row),)))


def test_leaders_leave_and_come_back_when_it_ends(cluster: ClusterWorld) -> None:
    cluster.create_topic("flights")
    alter(cluster, "", "leader.imbalance.check.interval.seconds", str(DELAY_S))
    first = preferred(cluster, "flights")
    assert cluster.leader_of("flights") == first
    alter(cluster, first, KEY, "-1")
    cluster.until(lambda: cluster.leader_of("flights") not in (0, first))
    assert produce(cluster, "flights", b"meanwhile").error_code == 0
    cluster.advance(10 * DELAY_S * 1_000)
    assert cluster.leader_of("flights") != first
    # Neither does it lead after an election, nor after it has started anew.
    cluster.hosts[first].kill()
    cluster.hosts[first].start()
    cluster.until_started(first)
    other = BrokerId(cluster.leader_of("flights"))
    cluster.hosts[other].kill()
    cluster.until(lambda: cluster.leader_of("flights") not in (0, other))
    assert cluster.leader_of("flights") != first
    cluster.hosts[other].start()
    cluster.until_started(other)
    alter(cluster, first, KEY, None)
    cluster.until(lambda: cluster.leader_of("flights") == first)
    assert produce(cluster, "flights", b"after").error_code == 0


def test_leaders_tell_who_is_behind(cluster: ClusterWorld) -> None:
    cluster.create_topic("flights")
    ((group, _),) = {(one.group, one.name) for one in cluster.replicas_of("flights").values()}
    leader = cluster.leader_of("flights")
    lost = next(one for one in (1, 2, 3) if one != leader)

    def lagging() -> dict[int, dict[int, tuple[int, ...]]]:
        reporting = cluster.broker(leader).controller.reporting
        found = cluster.do(leader, reporting.ask(map(BrokerId, (1, 2, 3)), Question(leads=True)))
        return {one: dict(report.behind) for one, report in found.items()}

    assert lagging()[leader][group] == ()
    assert [behind[0] for behind in lagging().values() if 0 in behind] == [()]
    cluster.hosts[lost].kill()
    cluster.advance(5_000)
    after = lagging()
    assert lost not in after and after[leader][group] == (lost,)
    assert [behind[0] for behind in after.values() if 0 in behind] == [(lost,)]
    answer = cluster.submit(
        AlterConfigs((changes(BROKER, str(leader), (KEY, SET, "-1")),)), at=leader
    )
    assert isinstance(answer, ResourceResults)
    assert "could not be written: it needs 2 of" in str(answer.resources[0].message)


def test_it_ends_by_itself(cluster: ClusterWorld) -> None:
    now_ms = cluster.broker(1).services.clock.wall_ms()
    alter(cluster, BrokerId(2), KEY, str(now_ms + 20_000))
    cluster.advance(10_000)
    configs = cluster.broker(1).controller.cluster.broker_configs
    assert configs[BrokerId(2)][KEY]
    cluster.advance(15_000)
    assert not configs[BrokerId(2)]
