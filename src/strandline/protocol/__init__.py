"""The Kafka protocol: messages as tables, and the codec made from them. Pure.

Map:    table.py (how a class body is read as a table), messages/ (one file per API), codec.py
        (encode, decode), decoder_source.py and encoder_source.py (the generated code),
        primitives.py (what generated code calls), apis.py (which APIs there are), headers.py (in
        front of every message), errors.py (Kafka's error codes), offsets_records.py (what lies in
        __consumer_offsets), consumer.py (what group members tell each other), fast_produce.py and
        fast_fetch.py (the two hot messages by hand, tested against the tables).
Source: reference kafka-protocol.md; KIP-482."""
