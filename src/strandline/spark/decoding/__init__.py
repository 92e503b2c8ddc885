"""Turns the record batches of a Fetch response into columns of Arrow.

Map:    decode.py       `decode`: the bytes of one partition to one `RecordBatch`
        reader.py       finds the batches that are wanted, checks and decompresses them
        rows.py         the rows so far, in arrays that grow
        fill.py         fills arrays by the compiled `records/_columns.c`, or by its twin:
        numpy_fill.py   the twin, for usual batches in bulk
        record_fill.py  its last resort, one record after the other
        table.py        the memory that all of these share
        columns.py      names and Arrow types of the columns
        aborted.py      which batches belong to aborted transactions
        errors.py       the error for damaged batches
Source: Kafka's message format v2; the columns of Spark's Kafka connector."""
