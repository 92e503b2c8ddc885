"""UpdateFeatures, and the features that ApiVersions tells. Source: KIP-584, KIP-1022."""

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.broker import features
from strandline.broker.features import Feature
from strandline.broker.handlers import api_versions
from strandline.protocol.errors import Error
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

ROWS = (Feature("some.version", 1, 3, 2), Feature("off.version", 0, 1, 0))


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features that a later release could have."""
    monkeypatch.setattr(features, "FEATURES", ROWS)
    uncached = api_versions._usual_answer.__wrapped__
    monkeypatch.setattr(api_versions, "_usual_answer", uncached)


def update(
    world: BrokerWorld, name: str, level: int, *, version: int = 2, upgrade_type: int = 1
) -> UpdateFeaturesResponse:
    one = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
    request = UpdateFeaturesRequest(feature_updates=[one])
    return world.ask(request, UpdateFeaturesResponse, version)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_no_feature_is_told_and_that_is_known(world: BrokerWorld, version: int) -> None:
    answer = world.ask(ApiVersionsRequest("tester", "1"), ApiVersionsResponse, version)
    assert (answer.supported_features, answer.finalized_features) == ([], [])
    assert answer.finalized_features_epoch == 0


@pytest.mark.usefixtures("rows")
def test_levels_are_told_and_those_from_0_only_where_clients_take_them(world: BrokerWorld) -> None:
    for version, names in ((3, ["some.version"]), (4, ["some.version", "off.version"])):
        answer = world.ask(ApiVersionsRequest("tester", "1"), ApiVersionsResponse, version)
        assert [one.name for one in answer.supported_features] == names
        (finalized,) = answer.finalized_features
        assert (finalized.name, finalized.max_version_level) == ("some.version", 2)
        assert finalized.min_version_level == 2


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("version", range(3))
def test_a_level_that_the_cluster_has_is_accepted(world: BrokerWorld, version: int) -> None:
    answer = update(world, "some.version", 2, version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert [one.error_code for one in answer.results] == ([0] if version < 2 else [])


@pytest.mark.parametrize("version", range(3))
def test_a_level_that_the_cluster_does_not_have_is_refused(
    world: BrokerWorld, version: int
) -> None:
    assert update(world, "transaction.version", 0).error_code == Error.INVALID_UPDATE_VERSION
    answer = update(world, "transaction.version", 2, version=version)
    assert answer.error_code == Error.INVALID_UPDATE_VERSION
    assert answer.error_message == (
        "'transaction.version' cannot be set to 2: this release has no such feature"
    )
    assert answer.results == []


@pytest.mark.usefixtures("rows")
def test_levels_are_part_of_the_release(world: BrokerWorld) -> None:
    assert update(world, "some.version", 2).error_code == 0
    for level in (-1, 0, 1, 3):
        answer = update(world, "some.version", level)
        assert answer.error_code == Error.INVALID_UPDATE_VERSION, level
    refused = update(world, "some.version", 2, upgrade_type=0)
    assert refused.error_code == Error.INVALID_UPDATE_VERSION
