"""JSON to typed columns: a fast way for most records, an exact way that decides about the rest.

How:    bytes -> typed.py (msgspec) -> columns.py -> Arrow
                    \\ what it refuses, and what suspects.py finds (duplicates, lost digits)
                     -> document.py -> exact.py -> the value or a reason
Map:    decoder.py   json_decoder: composes the two ways
        registered.py  json_schema_decoder: by a JSON Schema, with ids of a registry
        typed.py     typed decoding of one record
        columns.py   many decoded records -> Arrow columns
        suspects.py  which records the fast way may have changed
        document.py  JSON text as it stands, with duplicates and all digits
        exact.py     fits one document into a type: the rules
Source: decisions/0051."""
