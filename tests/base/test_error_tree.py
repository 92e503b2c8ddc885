"""The drawing at the head of `base.errors` has every error class of the product."""

import ast
import re
from pathlib import Path

from strandline.base import errors

ROOTS = {"Exception", "BaseException"}


def drawn_parents() -> dict[str, str]:
    """{class: its parent}, as the drawing has them; each with a meaning."""
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([|` -]*)(\w+)(?: {2,}(\S.*))?$", line)
        if found is None:
            continue
        branch, name, meaning = found.groups()
        path = [one for one in path if one[0] < len(branch)]
        if path:
            assert meaning, f"{name} has no meaning"
            parents[name] = path[-1][1]
        path.append((len(branch), name))
    return parents


def written_parents() -> dict[str, str]:
    """{class: its parent} of each class of the product that is, or comes from, an exception."""
    source = Path(errors.__file__).parents[1]
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for file in source.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    parents: dict[str, str] = {}
    while True:
        known = ROOTS | set(parents)
        more = {
            name: parent
            for name, names in bases.items()
            for parent in names
            if parent in known and name not in parents
        }
        if not more:
            return parents
        parents |= more


def test_the_drawing_has_every_error_class_under_its_parent() -> None:
    assert drawn_parents() == written_parents()
