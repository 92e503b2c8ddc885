"""Finds what code and pages tell people to type, and resolves it by the command tree.

How:    of code, every string of `src`, with `program()` as the program's name and other values as
        words; of pages, what stands in backticks or in a block. A hint ends with its line, its
        backticks, or a `;`."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from strandline.cli.main import app
from strandline.client.command_line import CLIENT_CONFIG_OPTION

ROOT = Path(__file__).parents[2]
WORD = "WORD"
"""In place of a value."""
TREE = typer.main.get_command(app)
SHELL = re.compile(r"\s*(?:\||>|&&|#|;|\)\s*$|, |\. |: ).*$")
IN_BACKTICKS = re.compile(r"`strandline ([^`\n]+(?:\n[^`\n]+)?)`")
IN_A_LINE = re.compile(r"(?:^|[\s:])strandline ([a-z][^\n`;]*)", re.MULTILINE)


def of_code(path: Path) -> Iterator[str]:
    """The hints in the strings of a file, without the program's name."""
    source = path.read_text()
    if "strandline " not in source and "program()" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        ):
            text = _text(node)
            found = IN_BACKTICKS.findall(text)
            if isinstance(node, ast.JoinedStr) and not found:
                found = IN_A_LINE.findall(text)
            yield from found


def of_page(path: Path) -> Iterator[str]:
    """The same of a page."""
    prose: list[str] = []
    is_block = False
    for line in path.read_text().replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            is_block = not is_block
        elif not is_block:
            prose.append(line)
        elif (typed := line.strip().removeprefix("$ ")).startswith("strandline "):
            yield typed.removeprefix("strandline ")
    yield from IN_BACKTICKS.findall("\n".join(prose))


def _text(node: ast.expr) -> str:
    """What a string says, values left out."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(
        str(one.value)
        if isinstance(one, ast.Constant)
        else "strandline"
        if isinstance(one, ast.FormattedValue) and ast.unparse(one.value) == "program()"
        else WORD
        for one in parts
    )


def mistake_in(hint: str) -> str:
    """Why it cannot be typed; empty where it can, values apart."""
    if hint.startswith("..."):
        return ""
    words = shlex.split(SHELL.sub("", hint.replace("\n", " ")), posix=True)
    if CLIENT_CONFIG_OPTION in words[:-1]:  # Every command takes it.
        at = words.index(CLIENT_CONFIG_OPTION)
        del words[at : at + 2]
    command: Any = TREE
    names: list[str] = []
    while hasattr(command, "commands") and words:
        if words[0].startswith("-"):
            break
        found = command.commands.get(words[0])
        if found is None:
            return f"{' '.join(['strandline', *names])} has no command {words[0]!r}"
        names.append(words.pop(0))
        command = found
    if names[:1] == ["pipeline"]:  # It has an application of its own.
        return ""
    return _mistake_of(command, " ".join(names), words)


def _mistake_of(command: Any, name: str, words: list[str]) -> str:
    options = {
        text: one
        for one in command.params
        if one.param_type_name == "option"
        for text in (*one.opts, *one.secondary_opts)
    }
    known = {"--help", "-h"}
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    given: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            given.append(word)
            continue
        text, equals, _ = word.partition("=")
        if text in known:
            continue
        if text not in options:
            return f"{name} has no option {text}"
        if not options[text].is_flag and not equals and left:
            left.pop(0)
    if len(given) > len(arguments) and all(one.nargs == 1 for one in arguments):
        return f"{name} takes {len(arguments)} arguments, not {' '.join(given)}"
    return ""
