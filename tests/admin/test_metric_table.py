"""The table of metrics is well formed, is on its page, and has the names that users know; what the
alert rules ask for is in it. Source: reference observers 4.4; decision 0023."""

import re
from pathlib import Path

import pytest
import yaml

from strandline.admin.metric import Kind
from strandline.admin.metric_table import METRICS, PARTITION_METRICS
from strandline.admin.metrics_page import PAGE, render_metrics_page
from strandline.admin.remote_reads import REASONS
from strandline.controller.balancer.reasons import WAITS
from strandline.controller.outages.happenings import Kind as AlarmClass

DOCS = Path(__file__).parents[2] / "docs"
RULES = DOCS / "operating" / "alerts.yml"
OBSERVER_NAMES = (
    "InSyncReplicasCount", "CaughtUpReplicasCount", "ObserversInIsrCount",
    "ObserverReplicasCount", "ReplicasCount", "IsNotCaughtUp",
)  # fmt: skip
PROCESS_NAMES = {
    "process_cpu_seconds_total", "process_open_fds", "process_max_fds",
    "process_resident_memory_bytes",
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS, ids=lambda one: one.name)
def test_a_metric_is_named_and_explained(metric: object) -> None:
    (row,) = [one for one in METRICS if one is metric]
    assert re.fullmatch(r"strandline_[a-z_]+[a-z]", row.name)
    assert row.help.endswith(".") and "\n" not in row.help_line and "\\" not in row.help_line
    assert row.name.endswith("_total") == (row.kind is Kind.COUNTER)
    assert not row.kafka or re.fullmatch(r"kafka\.[\w.]+:type=\S+( kafka.*)?", row.kafka)


def test_confluent_s_counts_of_a_partition_are_there_under_their_names() -> None:
    beans = {one.kafka for one in PARTITION_METRICS}
    assert {f"kafka.cluster:type=Partition,name={one}" for one in OBSERVER_NAMES} <= beans


def test_the_written_page_is_up_to_date_and_names_all() -> None:
    text = (DOCS / "reference" / PAGE).read_text()
    assert text == render_metrics_page(), (
        f"docs/reference/{PAGE} is old: strandline config reference --write docs/reference"
    )
    for row in METRICS:
        assert f"| `{row.name}` |" in text and row.kafka in text


def expressions() -> dict[str, str]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def test_alert_rules_ask_for_metrics_and_labels_that_there_are() -> None:
    known = {one.name: one for one in METRICS}
    found = expressions()
    assert len(found) >= 10
    for alert, expression in found.items():
        names = set(re.findall(r"\b(?:strandline|process)_\w+", expression))
        assert names and names <= known.keys() | PROCESS_NAMES, alert
        for name, selector in re.findall(r"\b(strandline_\w+)\{([^}]*)\}", expression):
            labels = set(re.findall(r'(\w+)(?:=~|!=|!~|=)"', selector))
            assert labels and labels <= set(known[name].labels), alert


def test_alert_rules_name_classes_and_reasons_that_there_are() -> None:
    values = {"class": {one.value for one in AlarmClass}, "reason": {*WAITS, *REASONS}}
    for alert, expression in expressions().items():
        for label, pattern in re.findall(r'\b(class|reason)(?:=~|=)"([^"]*)"', expression):
            assert set(pattern.split("|")) <= values[label], alert


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
            assert rule["annotations"]["summary"], rule["alert"]
            assert "for" in rule, rule["alert"]


def test_an_alert_about_one_broker_names_the_broker_of_a_machine() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            summary = rule["annotations"]["summary"]
            if "$labels.instance" in summary:
                assert "$labels.broker" in summary, rule["alert"]


def test_the_page_about_outages_says_which_metric_is_the_alarm() -> None:
    text = (DOCS / "operating" / "outages.md").read_text()
    assert "strandline_controller_alarms" in text
    known = {one.name for one in METRICS}
    for page in (DOCS / "operating").glob("*.md"):
        named = set(
            re.findall(r"\bstrandline_(?:controller|partition|broker|peer)_\w+", page.read_text())
        )
        assert named <= known, page.name
