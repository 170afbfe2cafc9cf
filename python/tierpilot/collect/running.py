"""A training in a process of its own that others measure while it runs."""

import itertools
import os
import signal
import time

from .child import forked, in_child, no_answer
from .counts import Counts
from .measure import OPTIMIZERS, build, draw, iterate, memory, waited_s
from .pipelines import Pipeline

WARM = 5  # iterations before anything counts


class RunningTraining:
    """A training in a process of its own that runs on until it is ended. RuntimeError: it is not described, or
    not warm, within the limit."""

    def __init__(self, architecture, seed, cpu, limit_s):
        self.architecture, self.seed = architecture, seed
        attempt, self.card, reads = in_child(lambda: draw(architecture, seed), limit_s)
        self._limit_s = limit_s
        self._counts = Counts()
        self.pid = forked()
        if self.pid == 0:
            try:
                self._run(attempt, reads, cpu)
            finally:
                os._exit(1)

    def _run(self, attempt, reads, cpu):
        os.sched_setaffinity(0, {cpu})
        before_bytes = memory("RssAnon")
        task, _ = build(self.architecture, self.seed, attempt)
        job = self.card["job"]
        read_bytes = int(4 * self.card["input_elements"]) if reads else 0
        pipeline = Pipeline(job["load_s"], read_bytes, job["loads_ahead"])
        optimizer = OPTIMIZERS[job["optimizer"]](task.model.parameters())
        held_bytes = 0
        for iterations in itertools.count(1):
            iterate(task, optimizer, pipeline)
            if iterations <= WARM:
                held_bytes = max(0, memory("RssAnon") - before_bytes)
            self._counts.write(iterations, time.process_time(), held_bytes)

    def counts(self):
        """(iterations, CPU seconds, bytes) at the end of the last iteration."""
        return self._counts.read()

    def waited_s(self):
        """How long it could have run and did not."""
        return waited_s(self.pid)

    def warm_up(self):
        until = time.monotonic() + self._limit_s
        while self.counts()[0] < WARM:
            self.check_lives()
            if time.monotonic() > until:
                raise RuntimeError(f"{self.architecture}, seed {self.seed}: {no_answer(self._limit_s)}")
            time.sleep(0.01)

    def check_lives(self):
        """RuntimeError: it does not."""
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended:
            self.pid = 0
            raise RuntimeError(f"{self.architecture}, seed {self.seed}: its process ended with status {status}")

    def loaded_ahead_s(self, iterations):
        """While it computed: what it waited for the core meanwhile is no time of others."""
        job = self.card["job"]
        return job["load_s"] * iterations if job["loads_ahead"] else 0

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        if self.pid:
            self.signal(signal.SIGKILL)
            os.waitpid(self.pid, 0)
