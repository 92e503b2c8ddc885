"""The rights of the files that a broker writes.

Why:    logs, objects in directories and whatever else a broker writes name topics, users and
        clients, or have records. No file should be readable by every user by accident.
How:    the umask of the process. What is secret has a narrower mode of its own: the data directory,
        keys, the audit log. The group keeps what the umask of the broker's service gives it, for
        programs that collect logs, or read buckets in directories.
Source: docs/operating/security.md, "Files"."""

import os

OTHERS = 0o007
GROUP_WRITE = 0o020


def take_rights_from_others() -> int:
    """Other users get no right to new files, and the group none to write. Returns the umask."""
    umask = os.umask(OTHERS | GROUP_WRITE)
    umask |= OTHERS | GROUP_WRITE
    os.umask(umask)
    return umask
