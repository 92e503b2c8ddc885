"""franz-go, kafka-go and sarama: one module with a program for each; go.sum pins what they need."""

from functools import partial

from clients.cells import program_cells
from clients.client import Access, Client
from clients.toolbox import built

STEPS = (("go", "build", "-mod=readonly", "-o", "{out}/", "./..."),)
NEEDS = {"go": "apt-get install golang-go"}


def _argv(program: str) -> list[str]:
    return [str(built("golang", STEPS) / program)]


def _prepare() -> object:
    return built("golang", STEPS)


FRANZ_GO = Client(
    name="franz-go",
    version="1.22.3",
    tried="every codec, idempotent, assignment, a group of two, topics and configuration",
    cells=program_cells(partial(_argv, "franz")),
    access=Access(
        argv=partial(_argv, "franz"),
        refusals={
            "write": "TOPIC_AUTHORIZATION_FAILED",
            "read": "TOPIC_AUTHORIZATION_FAILED",
            "join": "GROUP_AUTHORIZATION_FAILED",
            "create": "TOPIC_AUTHORIZATION_FAILED",
            "delete": "TOPIC_AUTHORIZATION_FAILED",
            "operate": "CLUSTER_AUTHORIZATION_FAILED",
            "wrong password": "SASL_AUTHENTICATION_FAILED",
            "wrong authority": r"\*tls.CertificateVerificationError",
            "wrong host": r"\*tls.CertificateVerificationError",
            "no certificate": ".*certificate required.*",
            "wrong secret": "HTTP 401",
            "gone": "RESOURCE_NOT_FOUND: .*",
        },
        renews=True,
    ),
    needs=NEEDS,
    prepare=_prepare,
    downloads=True,
)
KAFKA_GO = Client(
    name="kafka-go",
    version="0.4.51",
    tried="every codec (it has no idempotent producer), the rest as above",
    cells=program_cells(partial(_argv, "kafkago"), is_idempotent=False),
    needs=NEEDS,
    prepare=_prepare,
    downloads=True,
)
SARAMA = Client(
    name="sarama",
    version="1.61.1",
    tried="every codec, idempotent, assignment, a group of two, topics and configuration",
    cells=program_cells(partial(_argv, "sarama")),
    needs=NEEDS,
    prepare=_prepare,
    downloads=True,
)
