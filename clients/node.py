"""kafkajs and @platformatic/kafka: npm installs what package-lock.json pins by hash."""

from collections.abc import Sequence

from clients.cells import program_cells
from clients.client import Access, Client
from clients.toolbox import built

STEPS = (
    ("npm", "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--silent"),
)
CODECS = ("none", "gzip", "snappy", "lz4")
"""Those of Node 20; from 22.15 on it has zstd, too."""
NEEDS = {"node": "apt-get install nodejs", "npm": "apt-get install npm"}


def _prepare() -> object:
    return built("node", STEPS, copies=True)


def _argv(program: str) -> Sequence[str]:
    return ["node", str(built("node", STEPS, copies=True) / program)]


KAFKAJS = Client(
    name="kafkajs",
    version="2.2.4",
    tried="all codecs but zstd (snappy and lz4 by @platformatic/wasm-utils; zstd needs Node 22),"
    " idempotent, a group alone for want of an assignment, a group of two, topics and"
    " configuration (by AlterConfigs)",
    cells=program_cells(lambda: _argv("kafkajs.mjs"), codecs=CODECS),
    access=Access(
        argv=lambda: _argv("kafkajs.mjs"),
        refusals={
            "write": "TOPIC_AUTHORIZATION_FAILED",
            "read": "TOPIC_AUTHORIZATION_FAILED",
            "join": "KafkaJSGroupCoordinatorNotFound: .*",
            "create": "TOPIC_AUTHORIZATION_FAILED",
            "delete": "TOPIC_AUTHORIZATION_FAILED",
            "operate": "CLUSTER_AUTHORIZATION_FAILED",
            "wrong password": "KafkaJSSASLAuthenticationError: .*",
            "wrong authority": ".*self-signed certificate.*",
            "wrong host": ".*does not match certificate.*",
            "no certificate": ".*certificate required.*",
            "wrong secret": ".*HTTP 401.*",
        },
        not_tried={"rules": "it has no calls for users"},
        renews=True,
    ),
    needs=NEEDS,
    prepare=_prepare,
    downloads=True,
)
PLATFORMATIC = Client(
    name="@platformatic/kafka",
    version="1.35.0",
    tried="all codecs but zstd (that needs Node 22), else as kafkajs; IncrementalAlterConfigs",
    cells=program_cells(lambda: _argv("platformatic.mjs"), codecs=CODECS),
    needs=NEEDS,
    prepare=_prepare,
    downloads=True,
)
