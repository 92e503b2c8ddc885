"""confluent-kafka, kafka-python and aiokafka: installed with the tests, so they run everywhere."""

import sys
from importlib.metadata import version
from pathlib import Path

from clients.cells import program_cells
from clients.client import Client

PROGRAMS = Path(__file__).parent / "programs" / "python"
ALL = "every codec, idempotent, assignment, a group of two, topics and configuration"


def _argv(program: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / program)]


CONFLUENT_KAFKA = Client(
    name="confluent-kafka",
    version=version("confluent-kafka"),
    tried=ALL,
    cells=program_cells(lambda: _argv("confluent.py"), is_librdkafka=True),
)
KAFKA_PYTHON = Client(
    name="kafka-python",
    version=version("kafka-python"),
    tried="none and gzip (the others need more packages), idempotent, the rest as above",
    cells=program_cells(lambda: _argv("kafka_python.py"), codecs=("none", "gzip")),
)
AIOKAFKA = Client(
    name="aiokafka",
    version=version("aiokafka"),
    tried=ALL,
    cells=program_cells(lambda: _argv("aio.py")),
)
