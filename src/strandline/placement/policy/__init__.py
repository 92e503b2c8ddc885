"""The user's policy for a placement: the document, read strictly, and other products' languages.
Pure.

Map:    document.py (the structs), goals.py (the losses to survive, in words), words.py (the other
        parts in words, and changes), text.py (JSON or YAML in, canonical JSON out), checks.py
        (invalid documents), unknown.py (values that it names and no broker has), confluent.py and
        redpanda.py (their languages, read as they are).
Source: decision 0008."""
