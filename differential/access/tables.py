"""The recorded tables as files: JSON, sorted, a line for each answer."""

import json
from pathlib import Path

from differential.access.steps import Answers
from differential.access.walk import Table

RECORDED = Path(__file__).parent / "recorded"


def write_table(name: str, kafka: str, versions: dict[int, tuple[int, int]], table: Table) -> None:
    """Write a table. `kafka`: the version that answered; `versions`: of requests."""
    lines = ["{", f'"kafka": {json.dumps(kafka)},']
    lines.append(f'"versions": {json.dumps(dict(sorted(versions.items())))},')
    lines.append('"answers": {')
    requests = [
        f"{json.dumps(title)}: {{\n"
        + ",\n".join(
            f" {json.dumps(asked)}: {{\n"
            + ",\n".join(
                f"  {json.dumps(line)}:\n   {json.dumps(who)}" for line, who in answers.items()
            )
            + "}"
            for asked, answers in by_version.items()
        )
        + "}"
        for title, by_version in table.items()
    ]
    lines.append(",\n".join(requests))
    lines.append("}}")
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{name}.json").write_text("\n".join(lines) + "\n")


def read_table(name: str) -> tuple[dict[int, tuple[int, int]], Table]:
    """(versions of requests, answers)"""
    read = json.loads((RECORDED / f"{name}.json").read_text())
    versions = {int(key): (first, last) for key, (first, last) in read["versions"].items()}
    return versions, read["answers"]


def write_script(name: str, kafka: str, answers: Answers) -> None:
    """Write the answers to a script."""
    RECORDED.mkdir(exist_ok=True)
    text = json.dumps({"kafka": kafka, "answers": answers}, indent=1)
    (RECORDED / f"{name}.json").write_text(text + "\n")


def read_script(name: str) -> Answers:
    """The answers to a script."""
    read = json.loads((RECORDED / f"{name}.json").read_text())
    return read["answers"]  # type: ignore[no-any-return]
