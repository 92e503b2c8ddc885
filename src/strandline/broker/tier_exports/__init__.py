"""Exports of the tiers that this broker leads.

Map:    exporting.py    which exports are due, and the heads of this broker
        led_exports.py  one partition's exports into its buckets
Source: decision 0061."""
