"""A member of a group whose metadata no log could take is refused before it is kept.

Source: `broker.handlers.join_group`; Kafka's `max.message.bytes` of __consumer_offsets."""

from types import SimpleNamespace
from typing import cast

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.broker.coordinators.coordinator_host import CoordinatorHost
from strandline.coordinator.answers import JoinAnswer
from strandline.protocol.errors import Error
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)


@pytest.mark.parametrize(("size", "code"), [(995, Error.NONE), (996, Error.MESSAGE_TOO_LARGE)])
def test_a_member_has_no_more_metadata_than_a_group_may_have(
    world: BrokerWorld, size: int, code: Error
) -> None:
    kept: list[object] = []

    async def ask(command: object) -> JoinAnswer:
        kept.append(command)
        return JoinAnswer(member_id="m")

    coordinator = SimpleNamespace(group_bytes_max=1_000, ask=ask, new_token=lambda: 1)
    world.services.coordinator = cast(CoordinatorHost, coordinator)
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(size))
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=[protocol])
    assert world.ask(request, JoinGroupResponse, 5).error_code == code
    assert len(kept) == (code is Error.NONE)
