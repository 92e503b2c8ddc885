"""Where tables lie: local directories and URIs that Spark's file systems know."""

import re
from pathlib import Path

from strandline.base.errors import OperatorError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def absolute_location(location: str) -> str:
    """A table's location for Spark: a URI unchanged, a local path made absolute."""
    if not location:
        raise OperatorError("the table's location is empty: give a directory or a URI")
    if location.startswith("file:"):
        location = re.sub("^file:/*", "/", location)
    return location if _URI.match(location) else str(Path(location).absolute())


def is_local(location: str) -> bool:
    """Whether an absolute location is a path of this machine."""
    return not _URI.match(location)


def existing_table(location: str) -> str:
    """The absolute location of a table to read; a local one must be there."""
    absolute = absolute_location(location)
    if not _URI.match(absolute) and not (Path(absolute) / "_delta_log").is_dir():
        raise OperatorError(f"{absolute} is not a Delta table")
    return absolute
