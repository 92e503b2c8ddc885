"""What a topic's configuration asks of producers, ready for every request.

Why:    each request needs the same few values, and some follow from several keys.
Owns:   nothing: one is made for each configuration in force.
Source: decision 0044; decision 0074."""

import msgspec

from strandline.broker.server.recompression import compression_of
from strandline.config.topic import TopicConfig
from strandline.records.recompress import Compression
from strandline.records.validate_contents import TIMESTAMP_LIMIT, ContentRules


class ProduceTerms(msgspec.Struct, frozen=True, eq=False):
    """See the module. `compression`: None if batches keep their codec."""

    min_insync_replicas: int
    max_message_bytes: int
    needs_keys: bool
    has_append_time: bool
    before_max_ms: int
    after_max_ms: int
    reads_compressed: bool
    compression: Compression | None

    @classmethod
    def of(cls, config: TopicConfig) -> "ProduceTerms":
        """Those of a configuration."""
        return cls(
            config.min_insync_replicas,
            config.max_message_bytes,
            config.is_compacted,
            config.has_log_append_time,
            config.message_timestamp_before_max_ms,
            config.message_timestamp_after_max_ms,
            config.compressed_validation_enable,
            compression_of(config),
        )

    def rules_at(self, now_ms: int) -> ContentRules:
        """What the topic asks of records at this time, in ms since 1970."""
        if self.has_append_time:
            low = high = now_ms
        else:
            low = max(-TIMESTAMP_LIMIT, now_ms - self.before_max_ms)
            high = min(TIMESTAMP_LIMIT - 1, now_ms + self.after_max_ms)
        return ContentRules(self.needs_keys, self.has_append_time, low, high, self.reads_compressed)
