"""Reads topics into Spark: what a query asks for, what there is, which task reads which part.

Source: decisions/0049."""
