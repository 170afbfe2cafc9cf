"""The guest's first file system: one uncompressed cpio archive ("newc")."""

import os
import pathlib
import re
import stat
import subprocess

from harness import cache

FOLDERS = ["dev", "etc", "mnt", "out", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/sbin",
           "usr/lib", "usr/lib64", "var/lib", "var/tmp"]
# Debian's merged /usr: packages and the dynamic linker use both names.
MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class Image:
    """Paths in it are absolute; the first entry of a name stays."""

    def __init__(self):
        self._entries = {}  # name: (mode, bytes or the path of a file with them)
        for name, target in MERGED.items():
            self._entries[name] = (stat.S_IFLNK | 0o777, target.encode())
        for folder in FOLDERS:
            self._add(folder, stat.S_IFDIR | 0o755, b"")

    def add_link(self, path, target):
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def add_bytes(self, path, data, mode=0o644):
        self._add(path, stat.S_IFREG | mode, data)

    def add_file(self, path, source):
        """A copy of a file or link of the host."""
        source = pathlib.Path(source)
        if source.is_symlink():
            self.add_link(path, os.readlink(source))
        else:
            mode = 0o755 if os.access(source, os.X_OK) else 0o644
            self._add(path, stat.S_IFREG | mode, source)

    def add_tree(self, root):
        for path in sorted(root.rglob("*")):
            if path.is_symlink() or path.is_file():
                self.add_file("/" + str(path.relative_to(root)), path)

    def add_libraries(self, programs):
        for library in libraries(programs):
            self._add(library, stat.S_IFREG | 0o755, pathlib.Path(library))

    def write(self, path):
        with open(path, "wb") as file:
            # Sorted, so that a folder comes before what is in it.
            for number, name in enumerate(sorted(self._entries), 1):
                mode, data = self._entries[name]
                content = data if isinstance(data, bytes) else data.read_bytes()
                write_entry(file, name, mode, content, number)
            write_entry(file, "TRAILER!!!", 0, b"", 0)

    def _add(self, path, mode, data):
        name = str(path).lstrip("/")
        top, _, rest = name.partition("/")
        if rest and top in MERGED:
            name = f"{MERGED[top]}/{rest}"
        for parent in reversed(pathlib.PurePosixPath(name).parents[:-1]):
            self._entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))
        self._entries.setdefault(name, (mode, data))


def libraries(programs):
    """What the dynamic linker loads for them on this machine, and the linker itself."""
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    if missing := set(re.findall(r"(\S+) => not found", done.stdout)):
        raise cache.Unavailable(f"libraries not found: {', '.join(sorted(missing))}")
    return sorted(set(re.findall(r"^\t(?:\S+ => )?(/\S+) \(", done.stdout, re.MULTILINE)))


def write_entry(file, name, mode, data, number):
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    file.write(header + b"\0" * (-len(header) % 4))
    file.write(data)
    file.write(b"\0" * (-len(data) % 4))
