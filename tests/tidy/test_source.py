"""The source is under test too: sizes, names, docstrings, what may be said. STYLE, rule 10."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
ROOMS_SOURCES = [path for path in SOURCES if ROOT / "src" / "strandline" in path.parents]
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base_classes"}
PURE_ROOMS = {
    "base", "model", "config", "protocol", "records", "raft", "placement",
    "controller", "coordinator",
}  # fmt: skip
DOORS = {"src/strandline/spark/__init__.py", "src/pyspark_strandline/__init__.py"}
"""Packages that Spark's users, or Spark itself, import a name from."""
SPARK_ROOMS = {"pipeline", "spark"}
IMPURE_MODULES = {
    "asyncio", "socket", "threading", "time", "logging", "subprocess", "os", "select", "selectors",
    "pathlib", "io", "datetime", "tempfile", "shutil",
}  # fmt: skip


def tracked(*patterns: str) -> list[Path]:
    """Files that git tracks."""
    names = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).exists()]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_is_short_and_says_why_it_exists(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= FILE_LINES_MAX, f"{lines} lines: split it by noun"
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree)
    assert docstring, "a module opens with its reason in one sentence"
    reason = docstring.split("\n\n")[0]
    assert reason.rstrip().endswith((".", ":")), reason


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_functions_are_short_and_public_ones_are_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name}: {length} lines"
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_public = not node.name.startswith("_")
            assert not is_public or ast.get_docstring(node), f"{node.name} has no docstring"


def test_no_file_has_a_vague_name() -> None:
    assert [relative(path) for path in SOURCES if path.stem in VAGUE_NAMES] == []


def test_a_rooms_init_is_only_its_map() -> None:
    for path in SOURCES:
        if path.name == "__init__.py" and relative(path) not in DOORS:
            body = ast.parse(path.read_text()).body
            assert len(body) == 1, f"{relative(path)} holds more than its docstring"


def test_a_rooms_map_names_every_module() -> None:
    for package in SOURCES:
        # The handlers are named by their table, each as its API is.
        if package.name != "__init__.py" or package.parent.name in {"strandline", "handlers"}:
            continue
        words = set(re.findall(r"\w+\.py|\w+/", package.read_text()))
        modules = {path.name for path in package.parent.glob("*.py")} - {"__init__.py"}
        rooms_within = {f"{path.parent.name}/" for path in package.parent.glob("*/__init__.py")}
        assert not (modules | rooms_within) - words, relative(package)


def test_pure_rooms_import_nothing_of_the_world() -> None:
    for path in ROOMS_SOURCES:
        parts = path.relative_to(ROOT / "src" / "strandline").parts
        if parts[0] not in PURE_ROOMS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            found = {name.split(".")[0] for name in names} & IMPURE_MODULES
            assert not found, f"{relative(path)} imports {found}"


def test_pure_rooms_get_their_random_numbers_handed_in() -> None:
    """`base/rng.py` is the seam; a module that draws by itself decides differently each time."""
    for path in ROOMS_SOURCES:
        parts = path.relative_to(ROOT / "src" / "strandline").parts
        if parts[0] in PURE_ROOMS and parts != ("base", "rng.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    assert "random" not in {alias.name for alias in node.names}, relative(path)
                elif isinstance(node, ast.ImportFrom):
                    assert node.module != "random", relative(path)


def test_only_the_rooms_of_spark_import_pyspark() -> None:
    for path in ROOMS_SOURCES:
        if path.relative_to(ROOT / "src" / "strandline").parts[0] not in SPARK_ROOMS:
            assert "import pyspark" not in path.read_text(), relative(path)
            assert "from pyspark" not in path.read_text(), relative(path)


def test_no_unfinished_marks_in_the_source() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")
    for path in SOURCES:
        text = path.read_text()
        assert not any(mark in text for mark in marks), relative(path)


def test_nothing_committed_names_a_registry_host() -> None:
    for path in tracked("requirements*", "*.toml", "*.json", "Makefile", "*.py"):
        text = path.read_text(errors="replace")
        assert "/simple/" not in text or path == Path(__file__), relative(path)
        assert "/maven" + "2/" not in text, relative(path)


def test_every_tracked_text_file_ends_with_a_newline() -> None:
    for path in tracked("*.py", "*.md", "*.toml", "Makefile", "*.txt"):
        text = path.read_text()
        assert not text or text.endswith("\n"), relative(path)
