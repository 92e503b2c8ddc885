"""docs/pipelines/plan.md says the defaults, and its files are good ones."""

import re
from pathlib import Path

from strandline.pipeline.plan.alternatives import parse_alternatives
from strandline.pipeline.plan.assumptions import Assumptions, decode_assumptions
from strandline.pipeline.plan.clusters import cluster_of_file

DOCS = Path(__file__).parents[3] / "docs/pipelines"
PAGE = (DOCS / "plan.md").read_text()


def test_the_page_shows_the_defaults() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```\n", PAGE, re.DOTALL)
    assert decode_assumptions(block, source="plan.md") == Assumptions()


def test_the_worked_decision_has_its_files_and_policies() -> None:
    cluster = cluster_of_file(DOCS / "five-regions.yaml")
    assumptions = decode_assumptions((DOCS / "five-regions.toml").read_text(), source="toml")
    assert len(cluster.candidates) == 200 and assumptions.traffic.produced_mb_per_s == 50
    commands = "".join(re.findall(r"```\n(strandline pipeline plan .*?)```", PAGE, re.DOTALL))
    words = re.findall(r"--policy (\S+)", commands)
    assert len(words) >= 3
    assert parse_alternatives(list(dict.fromkeys(words)), cluster)
