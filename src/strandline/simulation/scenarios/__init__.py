"""Scenarios written by people.

Map:    scenario_file.py  reads a scenario file
        scenario_rows.py  the tables of a scenario file
"""
