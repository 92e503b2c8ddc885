"""Runs tests that failed a second time, alone, where they depend on how busy the machine is.

Why:    tests with real brokers and other people's clients share two cores with all other tests. One
        of hundreds that waits too long for a process says nothing of the product, and hides what
        the rest says of a change. Whatever needs no broker is the same each time, and gets none.
How:    `python -m tests.again` after a run that failed: the tests that failed are those in pytest's
        cache. It refuses where there are more than a busy machine explains, or others. Both runs
        stand in the output: who failed first is to be looked into.
Source: HACKING, "Tests"."""

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import WITH_BROKERS

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
FAILED_COUNT_MAX = 3
AGAIN = ("-m", "pytest", "-q", "--last-failed", "--last-failed-no-failures", "none")


def why_not(failed: list[str]) -> str | None:
    """Why these tests are not run a second time, in one line; None where they are."""
    if not failed:
        return "no test is noted as failed: the run itself went wrong"
    others = [one for one in failed if not one.startswith(WITH_BROKERS)]
    if others:
        return f"these start no broker, and fail each time: {', '.join(others)}"
    if len(failed) > FAILED_COUNT_MAX:
        return f"{len(failed)} tests failed; no more than {FAILED_COUNT_MAX} are run again"
    return None


def main() -> int:
    """Exit code: 0 where all that failed pass alone."""
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    refused = why_not(failed)
    if refused is not None:
        sys.stderr.write(f"not run again: {refused}\n")
        return 1
    sys.stderr.write(f"failed beside other tests, and are run again alone: {', '.join(failed)}\n")
    return subprocess.run([sys.executable, *AGAIN], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
