"""Bytes of records to typed columns, strictly: no value changes in silence.

Why:    a table must equal its topic. What does not round-trip is a problem with its reason, never
        a rounded number or a lost field.
Map:    ddl.py (a schema written as Spark DDL), evolution.py (how the type of a table grows).
Source: decisions/0051."""
