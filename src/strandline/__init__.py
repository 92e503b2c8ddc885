"""Strandline: a Kafka-compatible log that spans regions."""
