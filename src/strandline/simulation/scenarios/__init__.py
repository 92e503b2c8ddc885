"""Scenarios: what a run is made of, drawn or written by people.

Map:    scenario.py       one scenario: brokers, groups, load, faults
        scenario_file.py  reads a scenario file
        scenario_rows.py  the tables of a scenario file
"""
