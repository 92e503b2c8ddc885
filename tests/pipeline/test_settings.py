"""Settings are KEY=VALUE."""

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.settings import parse_settings


def test_settings_keep_equals_signs_in_values() -> None:
    assert parse_settings(["a=b=c", "d="], option="--kafka") == {"a": "b=c", "d": ""}
    with pytest.raises(OperatorError, match="--kafka x: expected KEY=VALUE"):
        parse_settings(["x"], option="--kafka")
