"""What only Kafka 4.4 has, against bytes that its own classes wrote."""

import pytest

from strandline.protocol.codec import decode, encode
from strandline.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from strandline.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from strandline.protocol.table import Message


@pytest.mark.parametrize(
    ("message", "version", "written"),
    [
        (ApiVersionsRequest("c", "1", "id", 7), 5, "026302310369640000000700"),
        (ApiVersionsRequest("c", "1"), 5, "0263023100ffffffff00"),
        (
            ApiVersionsResponse(0, [ApiVersion(18, 0, 5)], 1, finalized_features_epoch=9),
            5,
            "00000200120000000500000000010101080000000000000009",
        ),
        (DeleteGroupsRequest(["g", "h"]), 3, "030267026800"),
        (
            DeleteGroupsResponse(
                1, [DeletableGroupResult("g", 68, "m"), DeletableGroupResult("h")]
            ),
            3,
            "000000010302670044026d0002680000000000",
        ),
    ],
)
def test_a_message_is_written_as_kafka_4_4_writes_it(
    message: Message, version: int, written: str
) -> None:
    assert encode(message, version) == bytes.fromhex(written)
    assert decode(type(message), bytes.fromhex(written), 0, version)[0] == message
