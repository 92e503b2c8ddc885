"""confluent-kafka, kafka-python and aiokafka: installed with the tests, so they run everywhere."""

import sys
from importlib.metadata import version
from pathlib import Path

from clients.cells import program_cells
from clients.client import Access, Client

PROGRAMS = Path(__file__).parent / "programs" / "python"
ALL = "every codec, idempotent, assignment, a group of two, topics and configuration"


RULES = {
    "write": "TopicAuthorizationFailedError",
    "read": "TopicAuthorizationFailedError",
    "join": "GroupAuthorizationFailedError",
    "create": "TopicAuthorizationFailedError",
    "delete": "TopicAuthorizationFailedError",
    "operate": "ClusterAuthorizationFailedError",
}


def _argv(program: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / program)]


CONFLUENT_KAFKA = Client(
    name="confluent-kafka",
    version=version("confluent-kafka"),
    tried=ALL,
    cells=program_cells(lambda: _argv("confluent.py"), is_librdkafka=True),
    access=Access(
        argv=lambda: _argv("confluent.py"),
        refusals={
            "write": "TOPIC_AUTHORIZATION_FAILED",
            "read": "TOPIC_AUTHORIZATION_FAILED",
            "join": "GROUP_AUTHORIZATION_FAILED",
            "create": "TOPIC_AUTHORIZATION_FAILED",
            "delete": "TOPIC_AUTHORIZATION_FAILED",
            "operate": "CLUSTER_AUTHORIZATION_FAILED",
            "wrong password": "_AUTHENTICATION",
            "wrong authority": "_SSL",
            "wrong host": "_SSL",
            "no certificate": "_TRANSPORT",
            "wrong secret": "_AUTHENTICATION",
            "gone": "RESOURCE_NOT_FOUND",
        },
        renews=True,
        is_librdkafka=True,
    ),
)
KAFKA_PYTHON = Client(
    name="kafka-python",
    version=version("kafka-python"),
    tried="none and gzip (the others need more packages), idempotent, the rest as above",
    cells=program_cells(lambda: _argv("kafka_python.py"), codecs=("none", "gzip")),
    access=Access(
        argv=lambda: _argv("kafka_python.py"),
        refusals={
            **RULES,
            "wrong password": "KafkaTimeoutError SaslAuthenticationFailed",
            "wrong authority": "KafkaTimeoutError CERTIFICATE_VERIFY_FAILED",
            "wrong host": "KafkaTimeoutError CERTIFICATE_VERIFY_FAILED",
            "no certificate": "KafkaTimeoutError",
            "wrong secret": "KafkaTimeoutError HTTP Error 401",
            "gone": ".+",
        },
        renews=True,
        not_tried={"read": "it logs the refusal, and tells the application nothing"},
    ),
)
AIOKAFKA = Client(
    name="aiokafka",
    version=version("aiokafka"),
    tried=ALL,
    cells=program_cells(lambda: _argv("aio.py")),
    access=Access(
        argv=lambda: _argv("aio.py"),
        refusals={
            **RULES,
            "wrong password": "KafkaConnectionError SaslAuthenticationFailed",
            "wrong authority": "KafkaConnectionError CERTIFICATE_VERIFY_FAILED",
            "wrong host": "KafkaConnectionError CERTIFICATE_VERIFY_FAILED",
            "no certificate": "KafkaConnectionError",
            "wrong secret": "KafkaConnectionError HTTP Error 401",
        },
        renews=False,
        not_tried={"rules": "it has no calls for them"},
    ),
)
