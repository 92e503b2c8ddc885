"""How often a password is hashed: each round makes a stolen secret dearer to try, and a login, too.

Why:    a module of its own, because the command line shows the bounds and must start at once.
Source: RFC 7677, section 4 (at least 4,096); Kafka's ScramControlManager (at most 16,384)."""

ITERATIONS_DEFAULT = 8_192
ITERATIONS_MIN = 4_096
ITERATIONS_MAX = 16_384
