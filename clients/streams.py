"""Kafka Streams, at least once: a count of words with a repartition topic and a state store.

How:    one instance counts; a second one joins and takes partitions with their state; it leaves.
        The last count of each word in the output is the number of times that it was written."""

from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Producer

from clients.cells import one_course
from clients.client import Client, Place
from clients.jvm import NEEDS, VERSION, java, prepare
from clients.observer import PARTITIONS, wait
from clients.program import Program, temporary
from clients.records import CellError

WORDS = ("amber", "birch", "cedar", "delta", "ember")
LINES = 60
TIMEOUT_S = 80
TASKS = 2 * PARTITIONS
"""Partitions of the input and of the repartition topic."""


def _line(number: int) -> list[str]:
    return [WORDS[number % 5], WORDS[number % 3]]


def check(place: Place) -> None:
    """Count with one instance, with two, and with one again."""
    _Counting(place).check()


class _Counting:
    """One application on one cluster."""

    def __init__(self, place: Place) -> None:
        self.place, self.program = place, Program(java("WordCount"))
        self.input, self.output = f"{place.prefix}-lines", f"{place.prefix}-counts"
        self.application = f"{place.prefix}-application"
        self._written: Counter[str] = Counter()

    def check(self) -> None:
        """The whole course."""
        observer = self.place.observer
        observer.create(self.input, self.output)
        with self.program.member(*self._arguments("one")) as one:
            self._write(range(LINES))
            self._wait_counted("one instance")
            with self.program.member(*self._arguments("two")) as two:
                wait(self._is_shared, what="two instances that share all", timeout_s=TIMEOUT_S)
                self._write(range(LINES, 2 * LINES))
                self._wait_counted("two instances")
                two.stop()
            self._write(range(2 * LINES, 3 * LINES))
            self._wait_counted("the instance that stayed")
            one.stop()
        self._check_internal_topics()

    def _arguments(self, name: str) -> list[str]:
        state = temporary(self.place.directory, f"{self.application}-{name}")
        bootstrap = self.place.cluster.bootstrap
        return [bootstrap, self.input, self.output, self.application, str(state)]

    def _write(self, numbers: Sequence[int]) -> None:
        producer = Producer({"bootstrap.servers": self.place.cluster.bootstrap})
        for number in numbers:
            words = _line(number)
            self._written.update(words)
            producer.produce(self.input, key=f"line-{number}", value=" ".join(words))
        if producer.flush(TIMEOUT_S):
            raise CellError("the lines could not be written")

    def _wait_counted(self, by: str) -> None:
        def is_counted() -> bool:
            found = sorted(self.place.observer.read(self.output), key=lambda record: record.offset)
            last = {record.key: int(record.value or 0) for record in found}
            above = {word: n for word, n in last.items() if n > self._written[word]}
            if above:
                raise CellError(f"{by}: counted more than was written: {above}")
            return last == dict(self._written)

        wait(is_counted, what=f"every word counted by {by}", timeout_s=TIMEOUT_S)

    def _is_shared(self) -> bool:
        counts = self.place.observer.assignment(self.application)
        return len(counts) == 2 and counts[0] > 0 and sum(counts) == TASKS

    def _check_internal_topics(self) -> None:
        topics = self.place.observer.topics()
        for name in ("changelog", "repartition"):
            found = [t for t in topics if t.startswith(self.application) and t.endswith(name)]
            if len(found) != 1:
                raise CellError(f"topics of the {name}: {found}")
            if name == "changelog":
                policy = self.place.observer.config(found[0], "cleanup.policy")
                if policy != "compact":
                    raise CellError(f"the changelog has cleanup.policy {policy}")


STREAMS = Client(
    name="Kafka Streams",
    version=VERSION,
    tried="at least once: a count of words over a repartition topic and a state store with its"
    " changelog; one instance, two, one again",
    cells=one_course(check),
    needs=NEEDS,
    prepare=prepare,
    downloads=True,
)
