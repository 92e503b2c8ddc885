"""kafkajs and @platformatic/kafka: npm installs what package-lock.json pins by hash."""

from collections.abc import Sequence

from clients.cells import program_cells
from clients.client import Client
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
