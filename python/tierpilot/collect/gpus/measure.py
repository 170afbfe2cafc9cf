"""Measures one training configuration on a GPU, in a process of its own."""

import statistics
import time

import torch

from ..measure import OPTIMIZERS, build, draw, in_child, own_s, step, waited_s
from ..pipelines import Pipeline
from .watch import ENOUGH, Watch

_WARM_UP, _WARM_UP_S = 10, 0.5  # the first iterations choose among kernels
_FEWEST = 5  # iterations that are measured
_LONGEST_S = 10  # until the driver has told enough


def _measure(architecture, seed, drawn, seconds, calibration, gpu):
    attempt, card, reads = drawn
    job = card["job"]
    watch = Watch(gpu.index)
    task, _ = build(architecture, seed, attempt)
    task.move("cuda")
    read_bytes = int(4 * card["input_elements"]) if reads else 0
    pipeline = Pipeline(job["load_s"], read_bytes, job["loads_ahead"])
    optimizer = OPTIMIZERS[job["optimizer"]](task.model.parameters())
    rounds = [calibration.round()]
    until, warmed = time.monotonic() + _WARM_UP_S, 0
    while warmed < _WARM_UP or time.monotonic() < until:
        _iterate(task, optimizer, pipeline)
        warmed += 1
    watch.begin()
    window = _Window(job["load_s"] if job["loads_ahead"] else 0)
    while window.wants_more(seconds, watch):
        window.add(lambda: _iterate(task, optimizer, pipeline))
    watch.end()
    rounds.append(calibration.round())
    figures = window.figures(watch.percent())
    return {**figures, "memory_bytes": watch.bytes, "calibration_s": statistics.median(rounds)}


def _iterate(task, optimizer, pipeline):
    """How long it took once its data was there, until it was done on the GPU, too."""
    pipeline.batch()
    waited, at = waited_s(), time.monotonic()
    step(task, optimizer)
    torch.cuda.synchronize()
    return own_s(time.monotonic() - at, waited_s() - waited, 0)


class _Window:
    def __init__(self, ahead_s):
        self._ahead_s = ahead_s
        self._times, self._steps = [], []
        self._wall_s = self._waited_s = 0.0

    def wants_more(self, seconds, watch):
        if len(self._times) < _FEWEST or self._wall_s < seconds:
            return True
        return watch.samples() < ENOUGH and self._wall_s < _LONGEST_S

    def add(self, iterate):
        waited, at = waited_s(), time.monotonic()
        step_s = iterate()
        wall_s = time.monotonic() - at
        waited = waited_s() - waited
        self._wall_s += wall_s
        self._waited_s += waited
        self._times.append(own_s(wall_s, waited, self._ahead_s))
        self._steps.append(step_s)

    def figures(self, percent):
        # The driver tells whole percents: nobody uses none at all.
        busy_s = self._wall_s * max(percent, 0.1) / 100
        own_wall_s = own_s(self._wall_s, self._waited_s, self._ahead_s * len(self._times))
        return {
            "utilisation_milli": round(min(1000, 1000 * busy_s / own_wall_s), 1),
            "iteration_s": statistics.median(self._times),
            "busy_s": busy_s / len(self._times),
            "step_s": statistics.median(self._steps),
            "measured_iterations": len(self._times),
        }


def measure_on(gpu, architecture, seed, seconds, calibration):
    """(card, figures), as measure_apart() of a core. RuntimeError: it failed."""
    drawn = in_child(lambda: draw(architecture, seed, on_gpu=True))
    figures = in_child(lambda: _measure(architecture, seed, drawn, seconds, calibration, gpu))
    return drawn[1], {**figures, **gpu.features}
