"""Which APIs there are, and in which versions: one row per pair of request and response.

Why:    router, client, ApiVersions answer and documentation read the same rows.
How:    key and versions come from the message classes themselves, where they are written once.
        What a broker really offers is the broker's decision; this is what can be spoken.
Source: reference kafka-protocol.md, table of APIs (Kafka 4.4)."""

from dataclasses import dataclass

from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.fetch import FetchRequest, FetchResponse
from strandline.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.protocol.messages.produce import ProduceRequest, ProduceResponse
from strandline.protocol.table import Message, VersionRange


@dataclass(frozen=True, slots=True)
class Api:
    """One API. Versions `min_version` to `max_version` can be encoded and decoded."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_from: int | None
    """First version with compact lengths and tags; None: there is none."""
    advertised_min: int
    """Lowest version that ApiVersions names, below `min_version` where clients infer from it."""

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact lengths, tags, and the higher header."""
        return self.flexible_from is not None and version >= self.flexible_from

    def supports(self, version: int) -> bool:
        """Whether this version can be encoded and decoded."""
        return self.min_version <= version <= self.max_version


def _api(
    request: type[Message], response: type[Message], *, advertised_min: int | None = None
) -> Api:
    versions = VersionRange.parse(request.VERSIONS)
    flexible = VersionRange.parse(request.FLEXIBLE)
    assert (request.API_KEY, request.VERSIONS, request.FLEXIBLE) == (
        response.API_KEY,
        response.VERSIONS,
        response.FLEXIBLE,
    )
    return Api(
        key=request.API_KEY,
        name=request.__name__.removesuffix("Request"),
        request=request,
        response=response,
        min_version=versions.first,
        max_version=versions.last,
        flexible_from=None if request.FLEXIBLE == "none" else flexible.first,
        advertised_min=versions.first if advertised_min is None else advertised_min,
    )


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        # librdkafka takes a range from 0 as the sign of a broker that knows batches v2.
        _api(ProduceRequest, ProduceResponse, advertised_min=0),
        _api(FetchRequest, FetchResponse),
        _api(ListOffsetsRequest, ListOffsetsResponse),
        _api(MetadataRequest, MetadataResponse),
        _api(ApiVersionsRequest, ApiVersionsResponse),
    )
}
"""{API key: row}, ascending."""
