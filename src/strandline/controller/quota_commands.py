"""The command about quotas, and its answer; see `commands`.

Source: Kafka's AlterClientQuotas (KIP-546)."""

import msgspec


class QuotaAlteration(msgspec.Struct, frozen=True):
    """Changes of one entity's quotas: types and names as the client sent them, and (key, value),
    None to remove."""

    entity: tuple[tuple[str, str | None], ...]
    changes: tuple[tuple[str, float | None], ...]


class AlterQuotas(msgspec.Struct, frozen=True, tag=True):
    """Set and remove quotas, each entity as a whole or not at all."""

    alterations: tuple[QuotaAlteration, ...]
    is_validation: bool = False
    """Only tell what would be refused."""


class QuotaResult(msgspec.Struct, frozen=True):
    """The result for one entity."""

    error_code: int = 0
    message: str | None = None


class QuotaResults(msgspec.Struct, frozen=True, tag=True):
    """One result for each alteration of the command, in its order."""

    results: tuple[QuotaResult, ...]
    error_code: int = 0
