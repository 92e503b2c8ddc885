"""Which bucket a name stands for, and another one in its place: an API of Strandline's own.

Source: docs/decisions/0068-which-bucket.md."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class IdentifyBucketRequest(Message):
    """One bucket of `[tiered] buckets`, by its name."""

    API_KEY = 20_022
    VERSIONS = "0"
    FLEXIBLE = "0+"

    bucket: Annotated[str, F("string")] = ""
    # What the bucket's `identity.json` says; empty only to ask which one the cluster knows.
    bucket_id: Annotated[str, F("string")] = ""
    # The identity of the bucket whose place it takes; empty if the cluster knows none.
    replaced_id: Annotated[str, F("string")] = ""


class IdentifyBucketResponse(Message):
    """What the cluster knows now."""

    API_KEY = IdentifyBucketRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    cluster_id: Annotated[str, F("string")] = ""
    # Empty if the cluster has not used the bucket yet.
    bucket_id: Annotated[str, F("string")] = ""
    # How often the bucket was replaced; -1 if the cluster has not used it yet.
    generation: Annotated[int, F("int32")] = -1
