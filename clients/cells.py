"""The cells of clients that have a program (`program.py` has its steps), or one course for all."""

from collections.abc import Sequence

from clients import grouping
from clients.client import CELLS, CODECS, Argv, Cell, Place
from clients.observer import PARTITIONS, REPLICAS
from clients.program import Program
from clients.records import CellError, judge, parse

COUNT = 60
IDEMPOTENT = "idempotent"
RETENTION_MS = "7200000"


def program_cells(
    argv: Argv,
    *,
    codecs: Sequence[str] = CODECS,
    is_idempotent: bool = True,
    is_librdkafka: bool = False,
    count: int = COUNT,
) -> dict[str, Cell]:
    """The four cells of a program."""
    kinds = [*codecs, IDEMPOTENT] if is_idempotent else list(codecs)

    def produce(place: Place) -> None:
        topic = f"{place.prefix}-produce"
        topics = [f"{topic}-{kind}" for kind in kinds]
        place.observer.create(*topics)
        Program(argv(), environment=place.environment).run(
            "produce", place.cluster.bootstrap, topic, str(count), *kinds
        )
        read = place.observer.read_by_another if is_librdkafka else place.observer.read
        for name, kind in zip(topics, kinds, strict=True):
            judge(read(name), range(count), where=kind)
        place.observer.delete(*topics)

    def consume(place: Place) -> None:
        topic = f"{place.prefix}-consume"
        place.observer.create(topic)
        for index, codec in enumerate(codecs):
            numbers = range(index * COUNT, (index + 1) * COUNT)
            place.observer.write(topic, numbers, codec=codec)
        total = COUNT * len(codecs)
        lines = Program(argv(), environment=place.environment).run(
            "consume", place.cluster.bootstrap, topic, str(total)
        )
        found = [parse(line) for line in lines if line.startswith("record\t")]
        judge(found, range(total), where=", ".join(codecs))
        place.observer.delete(topic)

    def admin(place: Place) -> None:
        topic = f"{place.prefix}-admin"
        lines = Program(argv(), environment=place.environment).run(
            "admin", place.cluster.bootstrap, topic
        )
        judge_admin(place, topic, lines)

    def group(place: Place) -> None:
        grouping.check(place, Program(argv(), environment=place.environment))

    return {"produce": produce, "consume": consume, "group": group, "admin": admin}


def judge_admin(place: Place, topic: str, lines: Sequence[str]) -> None:
    """What the program made is there; what it described is so; what it deleted is gone."""
    described = dict(line.split("\t", 1) for line in lines if "\t" in line)
    expected = {"partitions": str(PARTITIONS), "retention.ms": RETENTION_MS}
    for what, value in expected.items():
        if described.get(what) != value:
            raise CellError(f"{what} described as {described.get(what)!r}, not {value!r}")
    topics = place.observer.topics()
    if topics.get(topic) != [REPLICAS] * PARTITIONS:
        raise CellError(f"{topic} has partitions with replicas {topics.get(topic)}")
    if f"{topic}-gone" in topics:
        raise CellError(f"{topic}-gone is still there")
    if (retention := place.observer.config(topic, "retention.ms")) != RETENTION_MS:
        raise CellError(f"retention.ms is {retention}")
    place.observer.delete(topic)


def one_course(check: Cell) -> dict[str, Cell]:
    """All cells of a client whose work is one course: the first one runs it, the others repeat its
    answer."""
    answers: dict[str, str] = {}

    def cell(place: Place) -> None:
        key = place.cluster.bootstrap
        if key not in answers:
            try:
                check(place)
                answers[key] = ""
            except CellError as error:
                answers[key] = str(error)
        if answers[key]:
            raise CellError(answers[key])

    return dict.fromkeys(CELLS, cell)
