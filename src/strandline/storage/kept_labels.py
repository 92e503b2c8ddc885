"""What a data directory keeps of its broker's labels, beside the identity.

Why:    a label that was changed while the broker ran is still so when it starts again, whoever
        admits it then; and where a broker is should be seen on the broker itself.
How:    labels.json, replaced as a whole:  {"labels": {"region": ...}, "configured": {...}}
        The controller has the same, and is right where they differ: so nothing waits until this is
        durable, and what cannot be read is as not there.
Owns:   the file.
Source: decision 0015."""

import logging
import os

import msgspec

from strandline.model.cluster import KeptLabels, Labels

FILE = "labels.json"
_log = logging.getLogger("strandline.storage")


class _File(msgspec.Struct, frozen=True):
    """{label: value}, as the broker has them, and as its configuration said at its start."""

    labels: dict[str, str]
    configured: dict[str, str]


def read_labels(directory: str) -> KeptLabels | None:
    """What was kept; None where that is nothing, or cannot be read."""
    path = f"{directory}/{FILE}"
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(), type=_File)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("%s cannot be read, labels are those of the controller: %s", path, error)
        return None
    return KeptLabels(Labels.of(found.labels), Labels.of(found.configured))


def write_labels(directory: str, kept: KeptLabels) -> None:
    """Keep these; raises OSError."""
    told = _File(kept.labels.as_dict(), kept.configured.as_dict())
    path = f"{directory}/{FILE}"
    with open(f"{path}.new", "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
    os.replace(f"{path}.new", path)
