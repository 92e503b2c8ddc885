"""Turns what ends a server's process into one line and an exit code.

Source: STYLE, "Errors"."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.cli.exit_codes import ERROR, OK


@dataclass
class Outcome:
    """The exit code of the work of a process."""

    code: int = OK


@contextmanager
def tell_failure(tell: Callable[[str], None]) -> Iterator[Outcome]:
    """The boundary of a process: what fails becomes one line and an exit code."""
    outcome = Outcome()
    try:
        yield outcome
    except StrandlineError as error:
        tell(str(error))
        outcome.code = ERROR
    except OSError as error:
        tell(f"{error.filename or 'the operating system'}: {error.strerror or error}")
        outcome.code = ERROR
