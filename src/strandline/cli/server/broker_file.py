"""Reads a broker's configuration file, or reports in one line why it cannot.

Source: design section 3 (the config room takes text and touches no file)."""

from collections.abc import Mapping
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.config.broker import BrokerConfig
from strandline.config.load import load_broker_config


def read_file(path: Path) -> str:
    """The text of a file; raises OperatorError."""
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path} is not UTF-8 text") from error
    except OSError as error:
        raise OperatorError(f"{path}: cannot read: {error.strerror}") from error


def load_file(path: Path, *, environment: Mapping[str, str]) -> BrokerConfig:
    """The configuration in a file, with the environment on top; raises OperatorError."""
    return load_broker_config(read_file(path), file=str(path), environment=environment)
