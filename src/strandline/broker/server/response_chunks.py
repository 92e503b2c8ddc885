"""The pieces of an answer: bytes, or a range of a segment file that goes to the socket by itself.

Why:    the codec only asks how long a piece is, so a fetched gigabyte never enters Python's memory.
Source: protocol.table, `SizedPart`; python-speed reference 1 (fetch)."""

from typing import NamedTuple

from strandline.base.disk import File


class FilePart(NamedTuple):
    """`size_bytes` of `file` from `position`. While it is held the file stays readable."""

    file: File
    position: int
    size_bytes: int
