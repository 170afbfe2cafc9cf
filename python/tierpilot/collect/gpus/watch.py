"""What the driver counts of one process on a GPU while it trains."""

import os
import threading

from .nvml import Nvml, NvmlError

_PERIOD_S = 0.2
ENOUGH = 5  # samples of the driver, which takes one to six in a second


class Watch:
    """In a thread, from begin() to end()."""

    def __init__(self, index):
        self._nvml = Nvml()
        self._device = self._nvml.device(index)
        self._before_bytes = self._nvml.used_bytes(self._device)
        self._pid = os.getpid()
        self._begun, self._stop = threading.Event(), threading.Event()
        self._failed = ""
        self._newest_us = 0
        self._by_process, self._rates = {}, []  # percents
        self._samples = True  # the driver has them, by process
        self._listed = False  # by the number that this process has here
        self.bytes = 0  # of the GPU's memory that the process had at most
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self):
        self._thread.start()
        self._begun.wait()

    def samples(self):
        return len(self._own() if self._samples else self._rates)

    def end(self):
        self._stop.set()
        self._thread.join()
        self._nvml.close()

    def percent(self):
        """Of the time, that the GPU computed for this process."""
        percents = self._own() or self._rates
        if self._failed or not percents:
            raise RuntimeError(self._failed or "the driver told nothing of what it used")
        return sum(percents) / len(percents)

    def _own(self):
        # Within a container processes have other numbers: who computes alone is known all the same.
        if not self._listed and self._pid not in self._by_process and len(self._by_process) == 1:
            return next(iter(self._by_process.values()))
        return self._by_process.get(self._pid, [])

    def _run(self):
        try:
            self._take()
            self._by_process.clear()
            self._rates.clear()
            self._begun.set()
            while not self._stop.wait(_PERIOD_S):
                self._take()
            self._take_memory()
        except NvmlError as error:
            self._failed = str(error)
        finally:
            self._begun.set()

    def _take(self):
        try:
            for pid, at_us, percent in self._nvml.samples(self._device, self._newest_us):
                self._newest_us = max(self._newest_us, at_us)
                self._by_process.setdefault(pid, []).append(percent)
        except NvmlError:
            self._samples = False
        self._rates.append(self._nvml.busy_percent(self._device))
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
            own = max(0, self._nvml.used_bytes(self._device) - self._before_bytes)
        self.bytes = max(self.bytes, own)
