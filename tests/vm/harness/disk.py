"""A disk with a cache that forgets: what was not flushed may be lost, sector by sector, when the
power is cut. QEMU reaches it as an NBD server on a Unix socket.

QEMU's own disks would not do: what a killed QEMU has written stays in this machine's page cache.
The protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md"""

import os
import random
import socket
import struct
import subprocess
import threading

from harness import cache

SECTOR = 512
OPTION_MAGIC, OPTION_REPLY_MAGIC = 0x49484156454F5054, 0x3E889045565A9
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
OPTION_ABORT, OPTION_GO = 2, 7
REPLY_ACK, REPLY_INFO, REPLY_UNKNOWN = 1, 3, 0x80000001
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
FORCE_UNIT_ACCESS = 1
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
EINVAL = 22


class Disk:
    def __init__(self, folder, mib):
        self.socket = folder / "disk.sock"
        self._bytes = mib << 20
        image = folder / "platter"
        with open(image, "wb") as platter:
            platter.truncate(self._bytes)
        try:
            subprocess.run(["mke2fs", "-q", "-t", "ext4", image], check=True, capture_output=True)
        except FileNotFoundError as error:
            raise cache.Unavailable("mke2fs is not installed") from error
        self._platter = os.open(image, os.O_RDWR)
        self._unflushed = {}  # sector: what was written there last
        self._lock = threading.Lock()
        self._writes_left = None
        self._cuts = 0
        self._cut = threading.Event()
        self.stopped = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.socket))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def stop_after(self, writes):
        """So many more, and nothing is answered any more: the moment to cut the power."""
        self.stopped.clear()
        self._cut.clear()
        self._writes_left = writes

    def cut_power(self, seed):
        """When QEMU is dead. How many sectors were not flushed, and how many of them are lost."""
        draw = random.Random(seed)
        with self._lock:
            self._cuts += 1
            sectors = len(self._unflushed)
            kept = {sector: data for sector, data in self._unflushed.items() if draw.random() < 0.5}
            self._write_down(kept)
            self._unflushed.clear()
        self._writes_left = None
        self._cut.set()
        return sectors, sectors - len(kept)

    def close(self):
        self._listener.close()
        os.close(self._platter)

    def _write_down(self, sectors):
        for sector, data in sectors.items():
            os.pwrite(self._platter, data, sector * SECTOR)

    def _read(self, offset, length):
        with self._lock:
            data = bytearray(os.pread(self._platter, length, offset))
            first = offset // SECTOR
            for sector in range(first, (offset + length) // SECTOR):
                if sector in self._unflushed:
                    at = (sector - first) * SECTOR
                    data[at:at + SECTOR] = self._unflushed[sector]
        return bytes(data)

    def _still_has_power(self, cuts):
        """What a killed QEMU had sent is still read afterwards, and must not reach the disk."""
        if cuts != self._cuts:
            raise EOFError

    def _write(self, cuts, offset, data, at_once):
        first = offset // SECTOR
        sectors = {first + at // SECTOR: data[at:at + SECTOR] for at in range(0, len(data), SECTOR)}
        with self._lock:
            self._still_has_power(cuts)
            if at_once:
                for sector in sectors:
                    self._unflushed.pop(sector, None)
                self._write_down(sectors)
            else:
                self._unflushed.update(sectors)

    def _count_write(self):
        if self._writes_left is None:
            return
        self._writes_left -= 1
        if self._writes_left <= 0:
            self.stopped.set()
            self._cut.wait()
            raise EOFError  # what it was sent besides is lost

    def _flush(self, cuts):
        with self._lock:
            self._still_has_power(cuts)
            self._write_down(self._unflushed)
            self._unflushed.clear()

    def _serve(self):
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve_one, args=(peer,), daemon=True).start()

    def _serve_one(self, peer):
        cuts = self._cuts
        with peer, peer.makefile("rb") as asked:
            try:
                peer.sendall(struct.pack(">8sQH", b"NBDMAGIC", OPTION_MAGIC, 1 | 2))
                receive(asked, 4)  # the client's flags
                if self._negotiate(peer, asked):
                    while self._answer(peer, asked, cuts):
                        pass
            except (OSError, EOFError):
                pass  # QEMU was killed

    def _negotiate(self, peer, asked):
        def reply(option, kind, data=b""):
            peer.sendall(struct.pack(">QIII", OPTION_REPLY_MAGIC, option, kind, len(data)) + data)
        while True:
            _, option, length = struct.unpack(">QII", receive(asked, 16))
            receive(asked, length)
            if option == OPTION_GO:
                flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA
                reply(option, REPLY_INFO, struct.pack(">HQH", 0, self._bytes, flags))
                reply(option, REPLY_ACK)
                return True
            reply(option, REPLY_ACK if option == OPTION_ABORT else REPLY_UNKNOWN)
            if option == OPTION_ABORT:
                return False

    def _answer(self, peer, asked, cuts):
        _, flags, kind, cookie, offset, length = struct.unpack(">IHHQQI", receive(asked, 28))
        error, data = 0, b""
        if kind == READ:
            data = self._read(offset, length)
        elif kind == WRITE:
            self._write(cuts, offset, receive(asked, length), flags & FORCE_UNIT_ACCESS)
            self._count_write()
        elif kind == FLUSH:
            self._flush(cuts)
        elif kind == DISCONNECT:
            return False
        else:
            error = EINVAL
        peer.sendall(struct.pack(">IIQ", REPLY_MAGIC, error, cookie) + data)
        return True


def receive(asked, count):
    data = asked.read(count)
    if len(data) < count:
        raise EOFError
    return data
