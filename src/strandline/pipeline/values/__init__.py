"""Bytes of records to typed columns, strictly: no value changes in silence.

Why:    a table must equal its topic. What does not round-trip is a problem with its reason, never
        a rounded number or a lost field.
Map:    json/           JSON
        avro/           Avro
        protobuf/       Protobuf
        registry/       schemas by their ids, from a schema registry
        formats.py      the decoder that the words of a command ask for
        json_schema.py  the type that a JSON Schema describes
        inference.py    the type of samples of JSON
        text.py         UTF-8, for keys
        decoding.py     what every decoder offers: Decoder, DecodedValues, Mode
        problems.py     the reasons, and their kinds
        numbers.py      which text of a number is exact in which type
        times.py        dates and timestamps
        arrow_types.py  Spark types as Arrow types
        ddl.py          a schema written as Spark DDL
        evolution.py    how the type of a table grows
Source: decisions/0051."""
