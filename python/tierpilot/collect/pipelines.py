"""Input pipelines of a limited rate, which a training waits for."""

import os
import queue
import tempfile
import threading
import time

_READ_BYTES = 1 << 20
_AHEAD = 2  # batches


class Pipeline:
    """Delivers a batch each `load_s` seconds, the first one after as long."""

    def __init__(self, load_s, reads_bytes=0, loads_ahead=False):
        self._load_s = load_s
        self._file = _file_of(reads_bytes) if reads_bytes else None
        self._bytes = reads_bytes
        self._next = time.monotonic() + load_s
        self._ready = None
        if loads_ahead:
            self._ready = queue.Queue(_AHEAD)
            threading.Thread(target=self._load_on, daemon=True).start()

    def batch(self):
        """Returns when the next one is there."""
        if self._ready is not None:
            self._ready.get()
        elif self._load_s:
            self._load(time.monotonic() + self._load_s)

    def delay(self, seconds):
        """The training stood still for so long."""
        self._next += seconds

    def _load_on(self):
        while True:
            self._load(self._next)
            self._ready.put(None)
            self._next = max(self._next, time.monotonic()) + self._load_s

    def _load(self, until):
        for offset in range(0, self._bytes, _READ_BYTES):
            os.pread(self._file.fileno(), min(_READ_BYTES, self._bytes - offset), offset)
        time.sleep(max(0, until - time.monotonic()))


def _file_of(size):
    file = tempfile.TemporaryFile()
    file.write(os.urandom(min(size, _READ_BYTES)))
    file.truncate(size)
    return file
