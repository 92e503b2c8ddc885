"""Sets the levels that features of the whole cluster run at.

Source: KIP-584; KIP-778 (kinds of change, version 1); KIP-1022 (one result for all, version 2)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class FeatureUpdateKey(Message):
    """A feature and the level that it shall have; below 1: none."""

    feature: Annotated[str, F("string")] = ""
    max_version_level: Annotated[int, F("int16")] = 0
    allow_downgrade: Annotated[bool, F("bool", "0")] = False
    upgrade_type: Annotated[int, F("int8", "1+")] = 1  # 1 up, 2 down without a loss, 3 down


class UpdateFeaturesRequest(Message):
    """Changes of levels: all of them, or none."""

    API_KEY = 57
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    timeout_ms: Annotated[int, F("int32")] = 60000
    feature_updates: Annotated[list[FeatureUpdateKey], F("[]struct")] = []
    validate_only: Annotated[bool, F("bool", "1+")] = False


class UpdatableFeatureResult(Message):
    """The result for one feature."""

    feature: Annotated[str, F("string")] = ""
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""


class UpdateFeaturesResponse(Message):
    """One error for the request; up to version 1 also a result for each feature."""

    API_KEY = UpdateFeaturesRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    results: Annotated[list[UpdatableFeatureResult], F("[]struct", "0-1")] = []
