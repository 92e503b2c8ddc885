"""Rules and users by each client's own calls: the cell `rules`.

How:    a program makes two rules and a user, shows them, deletes them, and shows what is left:

            govern BOOTSTRAP NAME   rule     TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION
                                    deleted  the same
                                    left     the same; none is left
                                    user     MECHANISM ITERATIONS
                                    gone     the error for the user that was deleted"""

import re
from collections.abc import Sequence

from clients.client import Access, Place
from clients.program import Program
from clients.records import CellError

ITERATIONS = "5000"
MECHANISMS = ("SCRAM_SHA_256", "SCRAM_SHA_512")


def check(access: Access, place: Place, name: str) -> None:
    """Raises CellError."""
    program = Program(access.argv(), environment=place.environment)
    judge_governing(program.run("govern", place.cluster.bootstrap, name), name, access)


def judge_governing(lines: Sequence[str], name: str, access: Access) -> None:
    """Raises CellError unless the lines are those of what was made and deleted."""
    rules = [
        ["TOPIC", name, "PREFIXED", f"User:{name}", "*", operation, "ALLOW"]
        for operation in ("READ", "WRITE")
    ]
    users = [[mechanism, ITERATIONS] for mechanism in MECHANISMS]
    wanted = {"rule": rules, "deleted": rules, "left": [], "user": users}
    for word, expected in wanted.items():
        found = [
            line.replace("SCRAM-SHA-", "SCRAM_SHA_").split("\t")[1:]
            for line in lines
            if line.startswith(f"{word}\t")
        ]
        if found != expected:
            raise CellError(f"{word}: {found}, not {expected}")
    gone = next((line for line in lines if line.startswith("gone\t")), "no word")
    if not re.fullmatch(f"gone\t({access.refusals['gone']})", gone):
        raise CellError(f"a user that was deleted: {gone!r}, not {access.refusals['gone']!r}")
