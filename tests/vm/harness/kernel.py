"""A Debian kernel in the form that QEMU starts fastest, and its modules."""

import lzma
import os
import pathlib
import re
import struct
import subprocess

from harness import cache, debian

DECOMPRESSORS = {
    b"\x02!L\x18": ["lz4", "-dcq"],
    b"(\xb5/\xfd": ["zstd", "-dcq"],
    b"\xfd7zX": ["xz", "-dcq"],
    b"\x1f\x8b\x08\x00": ["gzip", "-dcq"],
}


class Kernel:
    """`branch` as in the metapackage linux-image-BRANCH-amd64: "6.12-cloud" or "cloud" (6.1)."""

    def __init__(self, branch):
        self.root = debian.unpacked(current_package(f"linux-image-{branch}-amd64"))
        self.image = next((self.root / "boot").glob("vmlinuz-*"))
        self.release = self.image.name.removeprefix("vmlinuz-")
        folders = [self.root / top / "lib/modules" / self.release for top in ("", "usr")]
        self.modules = next(folder for folder in folders if folder.exists())
        self.builtin = {module_name(line) for line in
                        (self.modules / "modules.builtin").read_text().splitlines()}

    def vmlinux(self):
        """The ELF image inside the bzImage: started directly (PVH), it need not unpack itself."""
        target = cache.directory() / f"vmlinux-{self.release}"
        if not target.exists():
            partial = target.with_suffix(f".{os.getpid()}")
            partial.write_bytes(extract_vmlinux(self.image.read_bytes()))
            partial.rename(target)
        return target

    def module_files(self, names):
        """[(name, bytes)] of the named modules and what they need, in the order of loading."""
        files = {module_name(path): path for path in self.modules.rglob("*.ko*")}
        ordered = {}

        def add(name):
            name = name.replace("-", "_")
            if name in ordered or name in self.builtin:
                return
            if name not in files:
                raise cache.Unavailable(f"kernel {self.release} has no module {name}")
            data = module_bytes(files[name])
            for needed in needed_modules(data):
                add(needed)
            ordered[name] = data

        for name in names:
            add(name)
        return list(ordered.items())


def current_package(meta):
    """The kernel that a metapackage stands for; remembered for machines without apt's lists."""
    note = cache.directory() / f"{meta}.package"
    try:
        depends = debian.package_fields(meta)["Depends"]
        note.write_text(re.match(r"(linux-image-[^ ,]+)", depends)[1])
    except cache.Unavailable:
        if not note.exists():
            raise
    return note.read_text()


def module_name(path):
    return pathlib.PurePath(path).name.split(".ko")[0].replace("-", "_")


def module_bytes(path):
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return debian.run(["zstd", "-dcq", path])
    return path.read_bytes()


def needed_modules(data):
    """From .modinfo: Debian's packages come without modules.dep, which depmod makes."""
    found = re.search(rb"\0depends=([^\0]*)\0", data)
    return [name for name in found[1].decode().split(",") if name] if found else []


def extract_vmlinux(image):
    """From the setup header (Documentation/x86/boot.rst): payload_offset and payload_length."""
    setup_sectors = image[0x1F1]
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start:start + length]
    command = DECOMPRESSORS.get(payload[:4])
    if not command:
        raise cache.Unavailable(f"kernel payload of unknown form {payload[:4]!r}")
    try:
        # The payload's last four bytes are its size: decompressors complain of them.
        done = subprocess.run(command, input=payload, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise cache.Unavailable(f"{command[0]} is not installed") from error
    if done.stdout[:4] != b"\x7fELF":
        raise cache.Unavailable(f"{command[0]} made no ELF file of the kernel: {done.stderr!r}")
    return done.stdout
