"""What the driver counts of one process on a GPU while it trains."""

import os
import threading
import time

from .nvml import Nvml, NvmlError

_PERIOD_S = 0.1
_LONGEST_SAMPLE_S = 1.0  # the driver takes one to six samples in a second
_LONGEST_S = 2.0  # from begin(), until the driver has told enough
NOTHING_TOLD = "neither the driver nor its kernels tell what it used"


class Watch:
    """In a thread, from start() to end(). The window is from begin() to end()."""

    def __init__(self, index):
        self._nvml = Nvml()
        self._device = self._nvml.device(index)
        self._before_bytes = self._nvml.used_bytes(self._device)
        self._pid = os.getpid()
        self._stop = threading.Event()
        self._failed = ""
        self._newest_us = 0
        self._by_process = {}  # [(when it was told, when it ended by the driver's clock, percent)]
        self._rates = []  # [(when, percent)] of the whole GPU
        self._samples = True  # the driver has them, by process
        self._listed = False  # by the number that this process has here
        self._started_s = self._begun_s = 0.0
        self.bytes = 0  # of the GPU's memory that the process had at most
        self._thread = threading.Thread(target=self._run, daemon=True)

    def tells_apart(self):
        """The driver tells of this process, which has a context, by its number and with its memory."""
        try:
            return self._nvml.processes(self._device).get(self._pid) is not None
        except NvmlError:
            return False

    def start(self):
        """The process has the GPU for itself from now on."""
        self._take(time.monotonic())
        self._by_process.clear()
        self._rates.clear()
        self._started_s = time.monotonic()
        self._thread.start()

    def begin(self):
        self._begun_s = time.monotonic()

    def enough(self, seconds):
        now_s = time.monotonic()
        if self._failed or now_s - self._begun_s >= max(seconds, _LONGEST_S):
            return True
        if self._samples:
            return sum(cover_s for cover_s, _ in self._covers()) >= seconds / 2
        return now_s - self._started_s > _LONGEST_SAMPLE_S + _PERIOD_S

    def end(self):
        self._stop.set()
        self._thread.join()
        self._nvml.close()

    def percent(self):
        """Of the window, that the GPU computed for this process; None: it was not told. RuntimeError: the driver failed."""
        covers = self._covers()
        if self._failed:
            raise RuntimeError(self._failed)
        if not (covers or self._rates):
            return None
        if covers:
            return sum(cover_s * percent for cover_s, percent in covers) / sum(cover_s for cover_s, _ in covers)
        # Nobody else computes: where it has no samples the whole GPU is what this process uses, often nothing.
        own = [percent for at_s, percent in self._rates if at_s - self._started_s >= _LONGEST_SAMPLE_S]
        own = own or [self._rates[-1][1]]
        return sum(own) / len(own)

    def _covers(self):
        """(seconds of the window, percent) of each sample that is of the time since start() alone."""
        found, before_us = [], None
        for told_s, at_us, percent in list(self._own()):
            length_s = _LONGEST_SAMPLE_S
            if before_us is not None:
                length_s = min(length_s, (at_us - before_us) / 1e6)
            before_us = at_us
            cover_s = told_s - max(told_s - length_s, self._begun_s)
            if told_s - length_s >= self._started_s and cover_s > 0:
                found.append((cover_s, percent))
        return found

    def _own(self):
        # Within a container processes have other numbers: who computes alone is known all the same.
        if not self._listed and self._pid not in self._by_process and len(self._by_process) == 1:
            return next(iter(self._by_process.values()))
        return self._by_process.get(self._pid, [])

    def _run(self):
        try:
            while not self._stop.wait(_PERIOD_S):
                self._take(time.monotonic())
            self._take_memory()
        except NvmlError as error:
            self._failed = str(error)

    def _take(self, now_s):
        try:
            for pid, at_us, percent in self._nvml.samples(self._device, self._newest_us):
                self._newest_us = max(self._newest_us, at_us)
                self._by_process.setdefault(pid, []).append((now_s, at_us, percent))
        except NvmlError:
            self._samples = False
        self._rates.append((now_s, self._nvml.busy_percent(self._device)))
        self._take_memory()

    def _take_memory(self):
        told = {}
        try:
            told = self._nvml.processes(self._device)
        except NvmlError:
            pass
        self._listed = self._listed or self._pid in told
        own = told.get(self._pid) or (next(iter(told.values())) if len(told) == 1 else None)
        if own is None:
            # Right only because no other process comes or goes meanwhile: see Turns, tells_apart().
            own = max(0, self._nvml.used_bytes(self._device) - self._before_bytes)
        self.bytes = max(self.bytes, own)
