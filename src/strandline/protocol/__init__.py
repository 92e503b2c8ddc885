"""The Kafka protocol: messages as tables, and the codec generated from them. Pure.

Map:    table.py            how a class body is read as a table
        messages/           one file per API
        codec.py            encode, decode
        decoder_source.py   generates a decoder
        encoder_source.py   generates an encoder
        primitives.py       functions that generated code calls
        apis.py             all APIs, with keys and versions
        headers.py          the header of every message
        errors.py           Kafka's error codes
        offsets_records.py  the records of __consumer_offsets
        consumer.py         the messages between group members
        fast_produce.py     Produce by hand, tested against the tables
        fast_fetch.py       Fetch by hand, tested against the tables
Source: reference kafka-protocol.md; KIP-482."""
