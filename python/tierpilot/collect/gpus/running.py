"""A training on a GPU that gets ready, and then runs and stands still as it is told."""

import contextlib
import itertools
import mmap
import os
import signal
import time
import traceback
from multiprocessing import Pipe

import torch

from ..child import forked, no_answer
from ..counts import Counts
from ..measure import OPTIMIZERS, step
from ..pipelines import Pipeline
from .busy import busy_parts
from .nvml import Nvml, NvmlError
from .sizes import Sized

_WARM = 10  # iterations before anything counts, without a wait for data
_LEAVES_S = 2.0  # who is told to end
_POLL_S = 0.005


class GpuTraining:
    """In a process of its own, with a context of CUDA of its own. It stands still between iterations only: a client
    of MPS that stops with work in flight may hold up the others. RuntimeError, of what waits for it: it failed, ended,
    or did not answer within the limit."""

    def __init__(self, gpu, architecture, seed, most_times, limit_s):
        self.architecture, self.seed = architecture, seed
        self.card, self.memory_bytes = None, 0
        self._most_times, self._limit_s = most_times, limit_s
        self._counts, self._halts = Counts(), mmap.mmap(-1, 1)
        self._pipe, theirs = Pipe()
        self.pid = forked()
        if self.pid == 0:
            try:
                self._serve(gpu, theirs)
            finally:
                os._exit(1)
        theirs.close()
        self._asked_s = time.monotonic()

    def get_ready(self):
        """It has its context, is warm, and stands still."""
        self.card, self.memory_bytes = self._hear()

    def busy_parts(self, rate, seconds):
        """Of the time, that the GPU computes for it, which has it for itself, at so many iterations per second: as the
        driver tells, and as its kernels do (None: nothing). It is slower from then on."""
        self._ask("busy", (rate, seconds))
        return self._hear()

    def go(self):
        self._halts[0] = 0
        self._ask("run")

    def halt(self):
        """After its iteration; stood_still() waits for that."""
        self._halts[0] = 1
        self._asked_s = time.monotonic()

    def stood_still(self):
        self._hear()

    def counts(self):
        """(iterations, when the last of them ended)."""
        if self._pipe.poll():
            self._hear()
        return self._counts.read()[:2]

    def leave(self):
        """It is told to end, for which end() waits."""
        self.halt()
        self._ask("end")

    def end(self, until_s):
        """By then it is killed."""
        while self.pid and not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > until_s:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(_POLL_S)
        self.pid = 0
        self._pipe.close()

    def _ask(self, what, how=()):
        self._asked_s = time.monotonic()
        with contextlib.suppress(OSError):  # it died, which is told by its end of the pipe
            self._pipe.send((what, how))

    def _hear(self):
        if not self._pipe.poll(max(0, self._asked_s + self._limit_s - time.monotonic())):
            raise self._error(no_answer(self._limit_s))
        try:
            said, value = self._pipe.recv()
        except (EOFError, OSError):
            _, status = os.waitpid(self.pid, 0)
            self.pid = 0
            raise self._error(f"its process ended with status {status}") from None
        if said == "failed":
            raise self._error(value)
        return value

    def _error(self, why):
        return RuntimeError(f"{self.architecture}, seed {self.seed}: {why}")

    def _serve(self, gpu, pipe):
        try:
            card, iterate, compute = self._prepared()
            pipe.send(("ready", (card, _memory_bytes(gpu))))
            done = itertools.count(1)
            while True:
                wanted, how = pipe.recv()
                if wanted == "end":
                    os._exit(0)
                answer = busy_parts(gpu, iterate, compute, *how) if wanted == "busy" else self._run(iterate, done)
                pipe.send((wanted, answer))
        except Exception:
            pipe.send(("failed", traceback.format_exc()))

    def _prepared(self):
        sized = Sized(self.architecture, self.seed, self._most_times)
        card, job, task = sized.card, sized.card["job"], sized.build()
        task.move("cuda")
        optimizer = OPTIMIZERS[job["optimizer"]](task.model.parameters())
        pipeline = Pipeline(job["load_s"], int(4 * card["input_elements"]) if sized.reads else 0, job["loads_ahead"])

        def compute():
            step(task, optimizer)
            torch.cuda.synchronize()

        def iterate():
            pipeline.batch()
            compute()

        for _ in range(_WARM):
            compute()
        return card, iterate, compute

    def _run(self, iterate, done):
        while not self._halts[0]:
            iterate()
            self._counts.write(next(done), time.monotonic(), 0)


def end_all(trainings):
    """None of their processes is left."""
    for training in trainings:
        training.leave()
    until_s = time.monotonic() + _LEAVES_S
    for training in trainings:
        training.end(until_s)


def _memory_bytes(gpu):
    """Of the GPU's memory; where the driver does not know this process by its number, what PyTorch has of it."""
    told = None
    with contextlib.suppress(NvmlError), Nvml() as nvml:
        told = nvml.processes(nvml.device(gpu.index)).get(os.getpid())
    return told or torch.cuda.max_memory_reserved()
