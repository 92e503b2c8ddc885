"""Files and flushes.

Map:    real_disk.py       files of the operating system
        read_only_disk.py  the same, for reading only
        file_system.py     file system queries of both
        descriptor.py      a file descriptor
        flusher.py         flushes files on a thread
        kernel_flusher.py  flushes files through the kernel's AIO
"""
