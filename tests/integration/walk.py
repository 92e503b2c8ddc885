"""A page that is a walk: its commands in their order, and what the page says that they show.

How:    a block without a word is commands, the next block of text is what they print. A second
        block of text is what the command prints that was left to run. `...` in a line stands for
        anything, and as a line for any lines."""

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S, DevCluster
from tests.integration.pages import PAGES

from strandline.cli.exit_codes import ERROR, UNHEALTHY

ANYTHING = "..."
ASKS = re.compile(
    r"strandline (\w+ (status|list|explain|describe|ok-to-stop|balance)|.* --dry-run)"
)
"""Commands that change nothing: they are repeated until the cluster has come so far."""
STAYS = re.compile(r"strandline drill region .*--yes")
"""A command of another terminal."""
SETTLED_S = 90
PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """`lines`: the commands, none if this is what the command of another terminal has printed."""

    title: str
    lines: tuple[str, ...]
    shown: tuple[str, ...] = ()


def steps(page: str) -> Iterator[Step]:
    """Those of a page of docs/operating, in their order."""
    for section in (PAGES / page).read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        typed: tuple[str, ...] = ()
        for block in text.split("```")[1::2]:
            word, _, body = block.partition("\n")
            lines = tuple(body.rstrip("\n").split("\n"))
            if word == "text":
                yield Step(title, typed, lines)
                typed = ()
            else:
                if typed:
                    yield Step(title, typed)
                assert not word and all(one.startswith("strandline ") for one in lines), title
                typed = lines
        if typed:
            yield Step(title, typed)


def agrees(told: str, shown: tuple[str, ...]) -> bool:
    """Whether that was printed which the page shows; widths of columns do not count."""
    pattern = ""
    for line in shown:
        if line.strip() == ANYTHING:
            pattern += r"(?:[^\n]*\n)*?"
        else:
            words = " ".join(line.split())
            pattern += re.escape(words).replace(re.escape(ANYTHING), "[^\n]*") + "\n"
    text = "".join(" ".join(line.split()) + "\n" for line in told.splitlines())
    return re.fullmatch(pattern, text) is not None


def code_of(shown: tuple[str, ...]) -> int:
    """The exit code of a command that prints this."""
    if any(line.startswith("error: ") for line in shown):
        return ERROR
    if "DOWN" in shown or any(line.startswith("no: ") for line in shown[:1]):
        return UNHEALTHY
    return 0


@dataclass
class Walk:
    """Types the steps. `others`: commands that run in other terminals."""

    cluster: DevCluster
    others: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def take(self, step: Step) -> None:
        """One step. Fails if it prints anything else than the page."""
        if not step.lines:
            told, _ = self.others.pop().communicate(timeout=COMMAND_TIMEOUT_S)
            told = told.replace(COMMAND, "strandline")
            assert agrees(told, step.shown), f"{step}\n{told}"
            return
        if STAYS.fullmatch(step.lines[0]):
            self.others.append(self._begin(step.lines[0]))
            return
        told = "".join(self._type(line, 0) for line in step.lines[:-1])
        last, until = step.lines[-1], time.monotonic() + SETTLED_S
        while True:
            code, printed = self._try(last)
            if agrees(told + printed, step.shown) or not step.shown:
                assert code == code_of(step.shown), f"{last}: {code}\n{printed}"
                return
            if not ASKS.match(last) or time.monotonic() > until:
                raise AssertionError(f"{step.title}: {last}\n{told}{printed}\n{step.shown}")
            time.sleep(PAUSE_S)

    def end(self) -> None:
        """End what is left running."""
        for one in self.others:
            one.kill()
            one.wait()

    def _type(self, line: str, expected: int) -> str:
        code, printed = self._try(line)
        assert code == expected, f"{line}: {code}\n{printed}"
        return printed

    def _try(self, line: str) -> tuple[int, str]:
        running = self._begin(line)
        try:
            printed, _ = running.communicate(timeout=COMMAND_TIMEOUT_S)
        finally:
            running.kill()
        return running.returncode, printed.replace(COMMAND, "strandline")

    def _begin(self, line: str) -> "subprocess.Popen[str]":
        """Names a cluster where the page means the only one."""
        where = (
            f"--dir {self.cluster.directory}"
            if line.startswith("strandline dev ")
            else f"-b {self.cluster.bootstrap}"
        )
        typed = line.replace("strandline", COMMAND, 1)
        return subprocess.Popen(
            ["bash", "-c", f"exec {typed} {where}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
