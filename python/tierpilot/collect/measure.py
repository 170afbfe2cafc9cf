"""Measures one training configuration, in a process of its own."""

import ctypes
import random
import statistics
import time

import torch

from ..cards import describe
from .architectures import ARCHITECTURES
from .child import in_child
from .pipelines import Pipeline

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "SGD+momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=1e-4),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=1e-3),
}
_MOST_FLOPS = 2e9  # of a forward pass: an iteration is to take less than half a second
_WARM_UP_S = 0.2
_WARM_UP = 4
_FEWEST = 5  # iterations that are measured
_TRIES = 20
_CALIBRATE_EVERY_S = 0.1
# For rates of input pipelines only, so that they are of the order of what a model computes: drawn
# from what a card says, never from what was measured. Of a core and of a GPU.
_FLOPS_PER_S = {False: 3e10, True: 2e13}
_LAUNCH_S = {False: 6e-5, True: 3e-5}


def build(architecture, seed, attempt):
    random_ = random.Random(f"{architecture} {seed} {attempt}")
    torch.manual_seed(random_.getrandbits(31))
    return ARCHITECTURES[architecture](random_), random_


def draw(architecture, seed, on_gpu=False):
    """Which attempt is small enough, and its card with what is known of the job: the same on a GPU,
    but for how fast its data comes."""
    for attempt in range(_TRIES):
        task, random_ = build(architecture, seed, attempt)
        card = describe(task.model, task.inputs, task.batch)
        if card["flops"] <= _MOST_FLOPS:
            break
    reads, job = job_of(card, random_, on_gpu)
    card["job"] = job
    return attempt, card, reads


def job_of(card, random_, on_gpu):
    """(whether its data is read from a file, what is drawn of a job beside its model)."""
    rough_s = 3 * card["flops"] / _FLOPS_PER_S[on_gpu] + card["launches"] * _LAUNCH_S[on_gpu]
    kind = random_.choice(["memory", "waits", "waits", "reads", "waits ahead", "reads ahead"])
    job = {
        "optimizer": random_.choice(sorted(OPTIMIZERS)),
        "threads": 1,
        "load_s": 0.0 if kind == "memory" else round(rough_s * 10 ** random_.uniform(-0.7, 0.6), 6),
        "loads_ahead": kind.endswith("ahead"),
    }
    return kind.startswith("reads"), {"iterations": int(10 ** random_.uniform(2.5, 5)), **job}


def memory(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def waited_s(process="thread-self"):
    """How long this thread, or that process, could have run and did not; 0 where nobody counts it."""
    try:
        with open(f"/proc/{process}/schedstat") as figures:
            return int(figures.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def own_s(wall_s, waited_s, load_s):
    """Without what others took of the core, unless the job waited for its data meanwhile."""
    return max(wall_s - waited_s, min(wall_s, load_s))


def _give_back_freed():
    """What the parent once had and freed is not to hide what this job takes."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass  # another C library


def step(task, optimizer):
    optimizer.zero_grad()
    task.loss(task.model(*task.inputs), task.wanted).backward()
    optimizer.step()


def iterate(task, optimizer, pipeline):
    pipeline.batch()
    step(task, optimizer)


def measure(architecture, seed, drawn, seconds, calibration):
    """A row's figures; what others took of the core is not counted as time of the job."""
    attempt, card, reads = drawn
    job = card["job"]
    _give_back_freed()
    before_bytes = memory("RssAnon")
    task, _ = build(architecture, seed, attempt)
    read_bytes = int(4 * card["input_elements"]) if reads else 0
    pipeline = Pipeline(job["load_s"], read_bytes, job["loads_ahead"])
    optimizer = OPTIMIZERS[job["optimizer"]](task.model.parameters())
    ahead_s = job["load_s"] if job["loads_ahead"] else 0
    until, warmed = time.monotonic() + _WARM_UP_S, 0
    while warmed < _WARM_UP or time.monotonic() < until:
        iterate(task, optimizer, pipeline)
        warmed += 1
    # The peak is of all that is resident; what belongs to files is there from the first iteration.
    peak = memory("VmHWM") - memory("RssFile") - memory("RssShmem") - before_bytes
    window = _Window(calibration, pipeline)
    while window.wants_more(seconds):
        window.add(lambda: iterate(task, optimizer, pipeline), ahead_s)
    return {**window.figures(ahead_s), "memory_bytes": max(peak, 0)}


class _Window:
    """Iterations, one by one, and between them how fast the core is meanwhile."""

    def __init__(self, calibration, pipeline):
        self._calibration, self._pipeline = calibration, pipeline
        self._times, self._rounds = [], []
        self._wall_s = self._busy_s = self._waited_s = 0.0
        self._next_round_s = 0.0

    def wants_more(self, seconds):
        return len(self._times) < _FEWEST or self._wall_s < seconds

    def add(self, iterate, ahead_s):
        if self._wall_s >= self._next_round_s:
            self._rounds.append(self._calibration.round())
            self._pipeline.delay(self._rounds[-1])
            self._next_round_s = self._wall_s + _CALIBRATE_EVERY_S
        waited, busy, at = waited_s(), time.process_time(), time.monotonic()
        iterate()
        wall_s = time.monotonic() - at
        self._busy_s += time.process_time() - busy
        waited = waited_s() - waited
        self._waited_s += waited
        self._wall_s += wall_s
        self._times.append(own_s(wall_s, waited, ahead_s))

    def figures(self, ahead_s):
        wall_s = own_s(self._wall_s, self._waited_s, ahead_s * len(self._times))
        return {
            "utilisation_milli": round(min(1000, 1000 * self._busy_s / wall_s), 1),
            "iteration_s": statistics.median(self._times),
            "busy_s": self._busy_s / len(self._times),
            "measured_iterations": len(self._times),
            "calibration_s": statistics.median(self._rounds),
        }


def measure_apart(architecture, seed, seconds, calibration, limit_s):
    """(card, figures). It is described in one child and trained in another, which so has no other
    memory than the training's. RuntimeError: it failed, or one of them did not answer in so long."""
    drawn = in_child(lambda: draw(architecture, seed), limit_s)
    figures = in_child(lambda: measure(architecture, seed, drawn, seconds, calibration), limit_s)
    return drawn[1], figures
