"""Files of lines that their owner alone may use: users, tokens.

How:    A file that other users of the machine may use, or that is too large, is refused. A changed
        file takes the place of the old one as a whole.
Owns:   nothing."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from strandline.base.errors import OperatorError

FILE_BYTES_MAX = 10 * 1024 * 1024


def read_secret_lines(path: Path) -> list[bytes]:
    """The file's lines; raises OperatorError."""
    try:
        status = path.stat()
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise OperatorError(f"{path}: other users may use it: chmod 600 {path}")
        if status.st_size > FILE_BYTES_MAX:
            raise OperatorError(f"{path}: {status.st_size} bytes; {FILE_BYTES_MAX} are the most")
        return path.read_bytes().splitlines()
    except OSError as error:
        raise OperatorError(f"{path}: cannot read: {error.strerror}") from error


def replace_secret_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write the file anew, for its owner alone; raises OperatorError."""
    written = path.with_name(f"{path.name}.new")
    try:
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(one + b"\n" for one in lines)
            file.flush()
            os.fsync(file.fileno())
        written.replace(path)
    except OSError as error:
        raise OperatorError(f"{path}: cannot write: {error.strerror}") from error
