"""UpdateFeatures: accepts the levels that the cluster has, and refuses all others.

How:    levels are part of the release (see `broker.features`). One refusal refuses the whole
        request, as in Kafka.
Source: KIP-584, KIP-778, KIP-1022."""

from strandline.broker import features
from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES = (1, 2, 3)


async def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    """Refuse the first change that is one; otherwise everything is as wanted already."""
    for update in request.feature_updates:
        refusal = _refusal(update)
        if refusal:
            return UpdateFeaturesResponse(
                error_code=Error.INVALID_UPDATE_VERSION,
                error_message=f"{update.feature!r} cannot be set to {update.max_version_level}: "
                f"{refusal}",
            )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=one.feature, error_message=None)
            for one in request.feature_updates
        ],
    )


def _refusal(update: FeatureUpdateKey) -> str:
    """Why the level cannot be set; empty if the cluster has it."""
    if update.upgrade_type not in UPGRADE_TYPES:
        return f"there is no upgrade type {update.upgrade_type}"
    level = update.max_version_level
    if level < 0:
        return "a level cannot be negative"
    known = next((one for one in features.FEATURES if one.name == update.feature), None)
    if known is None:
        return "this release has no such feature"
    if level == known.level:
        return ""
    return f"the level is part of the release, and this one runs at {known.level}"
