"""The simulated disk.

Map:    disk.py            a disk that can fail, tear, rot and fill up
        file_image.py      a file's bytes, synced and unsynced
        directory_tree.py  names, synced and unsynced
        damage.py          what may rot on a disk
        log_starts.py      sees where logs are about to begin
"""
