"""Avro to typed columns, by the writer's schema resolved to the reader's.

Why:    a strict reader of our own: fastavro takes negative indexes, numbers that overflow,
        duplicate map keys and booleans of 2 without a word.
Map:    decoder.py     avro_decoder: which schema each value has, and the columns
        schema.py      an Avro schema as nodes, and Spark's type of it
        resolution.py  writer's and reader's schema -> how to read one value
        binary.py      Avro's binary encoding
Source: Avro 1.12 specification; decisions/0051."""
