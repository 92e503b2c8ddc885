"""What a user wants of a placement: the document, read strictly, and what others write. Pure.

Map:    document.py (the structs), goals.py (what must survive, in words), words.py (the other
        parts in words, and what was changed), text.py (JSON or YAML in, canonical JSON out),
        checks.py (what a document may not say), unknown.py (values that it names and no broker
        has), confluent.py and redpanda.py (their languages, read as they are).
Source: decision 0008."""
