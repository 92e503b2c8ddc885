"""Raises the limit of open files as far as the operating system allows.

Why:    each partition's log is an open file, and shells start processes with room for 1,024.
How:    the process raises its soft limit to the hard one; if that is small, it logs a warning
        before logs fail to open.
Source: setrlimit(2)."""

import logging
import resource

OPEN_FILES_MIN = 8_192
"""With fewer a broker starts, and says so."""

_log = logging.getLogger("strandline.cli")


def raise_open_files_limit() -> int:
    """Raise this process's limit as far as it may be; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError) as error:  # Some systems bound it below what they say.
            _log.warning("the open file limit stays at %d: %s", soft, error)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES_MIN:
        _log.warning(
            "the open file limit is %d, and each partition and client needs one: raise it "
            "(ulimit -Hn, LimitNOFILE=) to %d or more",
            soft,
            OPEN_FILES_MIN,
        )
    return soft
