"""What goes wrong.

Map:    kinds.py            the table of kinds
        schedule.py         begins and ends the planned faults
        faults.py           one function for each kind of fault
        domain_faults.py    faults of zones, regions and observers
        client_faults.py    faults between clients and brokers
        bucket_faults.py    faults of object stores
        disk_faults.py      faults of a disk that goes bad
        disk_losses.py      which disks may be lost
        targeted_faults.py  faults that wait for arbitration
        lasting_losses.py   hosts that never return
        fault_targets.py    how faults choose their targets
        disturbances.py     the faults in force now
"""
