"""The metrics of a machine's brokers in one scrape that Prometheus takes.

Source: Prometheus, "Exposition formats" (0.0.4); docs/decisions/0071-cores.md."""

import asyncio

from tests.admin.scrapes import Scrape
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined

from strandline.admin.exposition import Exposition
from strandline.admin.machine_metrics import MergedMetrics, ProcessFigures
from strandline.admin.metric_table import METRICS

ONE = b"""# HELP a_total Counts.
# TYPE a_total counter
a_total 1.0
# HELP b What { this is.
# TYPE b gauge
b{topic="x{y} z",partition="0"} 2
b{} 3
"""
TWO = b"""# HELP b What { this is.
# TYPE b gauge
b{topic="t",partition="0"} 4
# HELP c_info Names itself.
# TYPE c_info gauge
c_info{broker="8",zone=""} 1.0
"""


def merged(bodies: dict[int, bytes]) -> str:
    async def merge() -> bytes:
        found = MergedMetrics()
        for broker, body in bodies.items():
            await found.add(broker, body)
            found.add_process(broker, ProcessFigures(is_up=bool(body), starts=broker - 5))
        return b"".join(found.blocks())

    return asyncio.run(merge()).decode()


def test_each_family_stands_once_with_the_samples_of_all_brokers() -> None:
    assert merged({7: ONE, 8: TWO, 9: b""}) == (
        "# HELP a_total Counts.\n"
        "# TYPE a_total counter\n"
        'a_total{broker="7"} 1.0\n'
        "# HELP b What { this is.\n"
        "# TYPE b gauge\n"
        'b{broker="7",topic="x{y} z",partition="0"} 2\n'
        'b{broker="7"} 3\n'
        'b{broker="8",topic="t",partition="0"} 4\n'
        "# HELP strandline_process_up 1 while the broker's process runs and answers its "
        "supervisor.\n"
        "# TYPE strandline_process_up gauge\n"
        'strandline_process_up{broker="7"} 1\n'
        'strandline_process_up{broker="8"} 1\n'
        'strandline_process_up{broker="9"} 0\n'
        "# HELP strandline_process_starts_total How often the supervisor has started the broker's "
        "process.\n"
        "# TYPE strandline_process_starts_total counter\n"
        'strandline_process_starts_total{broker="7"} 2\n'
        'strandline_process_starts_total{broker="8"} 3\n'
        'strandline_process_starts_total{broker="9"} 4\n'
        "# HELP c_info Names itself.\n"
        "# TYPE c_info gauge\n"
        'c_info{broker="8",zone=""} 1.0\n'
    )


def test_only_the_metric_that_names_its_broker_has_a_label_broker() -> None:
    named = [one.name for one in METRICS if "broker" in one.labels]
    assert named == [
        "strandline_broker_info", "strandline_process_up", "strandline_process_starts_total",
    ]  # fmt: skip


def test_scrapes_of_a_real_cluster_merge_without_a_loss() -> None:
    with joined(ClusterWorld()) as world:
        world.create_topic("t", replicas=3)
        texts = {}
        for one in VOTERS:
            exposition = Exposition(world.broker(one))
            texts[one] = b"".join(world.do(one, exposition.blocks()))
    whole = Scrape(merged({one + 5: text for one, text in texts.items()}))
    for one, text in texts.items():
        alone = Scrape(text.decode())
        for name, series in alone.series.items():
            for key, value in series.items():
                own = dict(key)
                own.setdefault("broker", str(one + 5))
                assert whole.value(name, **own) == value
    ready = whole.of("strandline_broker_ready")
    assert {dict(key)["broker"] for key in ready} == {str(one + 5) for one in VOTERS}
