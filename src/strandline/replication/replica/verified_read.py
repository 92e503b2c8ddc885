"""Records for a reader that believes them: every checksum is checked first.

Why:    clients get record batches as they lie in the file, and check them; what a broker reads for
        itself (the controller's decisions, committed offsets) it acts on.
Source: reliability reference 6 (a CRC per batch, checked on read)."""

from strandline.base.errors import ApiError, StorageError
from strandline.records.batch import crc_matches, iterate_headers
from strandline.storage.log.reads import FileRange, RecordSlices


def verified_bytes(slices: RecordSlices) -> bytes:
    """The bytes of all batches. Raises StorageError where they are not what was written."""
    return b"".join([_verified(part) for part in slices.parts])


def _verified(part: FileRange) -> bytes:
    data = part.read()
    position = 0
    try:
        for header in iterate_headers(data):
            if not crc_matches(data, header):
                break
            position = header.position + header.size
    except ApiError:
        pass  # Not even a header.
    if position < part.length:
        raise StorageError(
            part.file.path,
            part.position + position,
            expected="a record batch with the right checksum",
            found="damaged bytes",
        )
    return data
