"""How far a training is, where its parent looks while it runs."""

import mmap
import struct

_HEAD_BYTES = 8


class Counts:
    """Three figures in memory that children have in common with who made it; all are 0 at first."""

    def __init__(self):
        self._bytes = mmap.mmap(-1, _HEAD_BYTES + 48)

    def write(self, iterations, *others):
        # In turn into two places, so that nobody reads what is being written.
        at = int(iterations) % 2
        struct.pack_into("ddd", self._bytes, _HEAD_BYTES + 24 * at, iterations, *others)
        self._bytes[0] = at

    def read(self):
        return struct.unpack_from("ddd", self._bytes, _HEAD_BYTES + 24 * self._bytes[0])
