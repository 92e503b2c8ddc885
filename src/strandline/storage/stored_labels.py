"""Stores the broker's labels in its data directory, beside the identity.

Why:    a label changed at run time must survive a restart, whichever controller admits the broker
        then; and an operator should see on the broker itself where it is.
How:    labels.json, replaced as a whole:  {"labels": {"region": ...}, "configured": {...}}
        The controller has the labels too, and is right where the two differ. So no write waits for
        the file to be durable, and an unreadable file counts as absent.
Owns:   the file.
Source: decision 0015."""

import logging
import os

import msgspec

from strandline.model.cluster import Labels, StoredLabels

FILE = "labels.json"
_log = logging.getLogger("strandline.storage")


class _File(msgspec.Struct, frozen=True):
    """{label: value}: the broker's labels, and the configured ones when it last started."""

    labels: dict[str, str]
    configured: dict[str, str]


def read_labels(directory: str) -> StoredLabels | None:
    """The stored labels; None if there are none or the file cannot be read."""
    path = f"{directory}/{FILE}"
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(), type=_File)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("%s cannot be read, labels are those of the controller: %s", path, error)
        return None
    return StoredLabels(Labels.of(found.labels), Labels.of(found.configured))


def write_labels(directory: str, labels: StoredLabels) -> None:
    """Store these labels. Raises OSError."""
    stored = _File(labels.labels.as_dict(), labels.configured.as_dict())
    path = f"{directory}/{FILE}"
    with open(f"{path}.new", "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n")
    os.replace(f"{path}.new", path)
