"""Queries of the file system that change nothing.

Why:    the disk that only reads and the disk that writes share them."""

import os


class FileSystem:
    """The part of `base.disk.Disk` that looks."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return os.path.exists(path)

    def modified_ms(self, path: str) -> int:
        """When the file was last changed."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def list_directory(self, path: str) -> list[str]:
        """Names in the directory, sorted."""
        return sorted(os.listdir(path))

    def free_bytes(self, path: str) -> int:
        """Space left for unprivileged users."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        """See `base.disk.Disk`."""
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def used_bytes(self, path: str) -> int:
        """See `base.disk.Disk`."""
        status = os.statvfs(path)
        return (status.f_blocks - status.f_bfree) * status.f_frsize
