"""What clients are told about access rules and delegation tokens: there is no authoriser.

Why:    an empty list of rules would look as if everything were forbidden, or as if a rule could be
        added. Kafka without an authoriser refuses, and tools show its reason.
Source: KIP-140, KIP-48."""

NO_AUTHORISER = "no authoriser is configured: every client may do everything"
