"""Composes a broker from its configuration and runs it.

Map:    serve.py           composes and runs a broker
        broker_file.py     reads a broker's configuration file
        audit.py           opens the audit log
        certificates.py    loads the certificates that the configuration names
        labels.py          asks where the broker is when it starts
        failures.py        what ends a process: one line, an exit code
        file_rights.py     the rights of files that a broker writes
        open_files.py      the limit of open files
        logs.py            logging
        stopped_broker.py  looks at the logs of a broker that is not running
"""
