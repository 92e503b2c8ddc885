"""The cells of a client where brokers ask for a proof.

How:        password      all work of the first matrix by SCRAM-SHA-512, then by SCRAM-SHA-256
            certificate   the same by a certificate of the client's own
            token         the same by OAUTHBEARER, with tokens for the client's credentials
            refusals      what is refused, and by which error (`attempts.py`)
            rules         rules and users by the client's own calls (`governing.py`)
            renewal       other certificates, and restarts, under work that goes on (`course.py`)
            session       logins that end under work that goes on"""

from collections.abc import Callable
from pathlib import Path

from bench.clusters import Cluster

from clients.access import governing
from clients.access.attempts import Attempting
from clients.access.cluster import ALLOWED, AccessCluster
from clients.access.course import Course
from clients.access.login import Login
from clients.cells import program_cells
from clients.client import CELLS, Access, Place
from clients.observer import PARTITIONS
from clients.program import Program
from clients.records import CellError

ACCESS_CELLS = ("password", "certificate", "token", "refusals", "rules", "renewal", "session")
COUNT = 20
CODECS = ("none",)


def answers_of(
    cluster: AccessCluster, access: Access, name: str, directory: Path
) -> dict[str, Callable[[], None]]:
    """{cell: its check}, which raises CellError. `name` is part of the names of its topics."""
    observer = cluster.observer()

    def place(cell: str, login: Login | None = None) -> Place:
        prefix = f"{ALLOWED}{name}-{cell}"
        found = Cluster("strandline", login.bootstrap if login else "", {}, directory)
        environment = login.environment(directory, prefix) if login else {}
        return Place(found, observer, directory, prefix, environment)

    def work(cell: str, *logins: Login) -> None:
        for login in logins:
            _work(access, place(f"{cell}-{login.told.get('mechanism', 'tls')[-3:].lower()}", login))

    def password() -> None:
        work("password", cluster.password(), cluster.password("SCRAM-SHA-256"))

    checks = {
        "password": password,
        "certificate": lambda: work("certificate", cluster.certificate()),
        "token": lambda: work("token", cluster.token()),
        "refusals": lambda: Attempting(cluster, access, place("refusals")).check(),
        "rules": lambda: governing.check(
            access, place("rules", cluster.admin()), f"governed-{name}"
        ),
        "renewal": lambda: Course(cluster, access, place("course")).renewal(),
        "session": lambda: Course(cluster, access, place("course")).session(),
    }
    return {cell: checks[cell] for cell in ACCESS_CELLS if cell not in access.not_tried}


def _work(access: Access, place: Place) -> None:
    """All that the first matrix has, with fewer codecs; then offsets and groups are listed."""
    cells = program_cells(
        access.argv, codecs=CODECS, is_librdkafka=access.is_librdkafka, count=COUNT
    )
    for cell in CELLS:
        cells[cell](place)
    _survey(access, place)


def _survey(access: Access, place: Place) -> None:
    """The log's ends, the groups and what is committed, as another client finds them."""
    topic, group = f"{place.prefix}-survey", f"{place.prefix}-members"
    observer = place.observer
    observer.create(topic)
    observer.write(topic, range(COUNT))
    program = Program(access.argv(), environment=place.environment)
    lines = program.run("survey", place.cluster.bootstrap, topic, group)
    told = [line.split("\t") for line in lines]
    ends = {int(one[1]): int(one[2]) for one in told if one[0] == "end"}
    if ends != observer.end_offsets(topic) or len(ends) != PARTITIONS:
        raise CellError(f"ends of the log: {ends}, not {observer.end_offsets(topic)}")
    groups = {one[1] for one in told if one[0] == "group"}
    if group not in groups or any(not one.startswith(ALLOWED) for one in groups):
        raise CellError(f"the groups are {sorted(groups)}")
    observer.delete(topic)
