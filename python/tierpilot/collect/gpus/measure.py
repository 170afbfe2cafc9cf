"""Trains one configuration on a GPU and measures it, in a process of its own, as Turns let it."""

import statistics
import time
from functools import partial

import torch

from ..measure import OPTIMIZERS, own_s, step, waited_s
from ..pipelines import Pipeline
from . import kernels
from .sizes import Sized
from .turns import Turns, ahead
from .watch import NOTHING_TOLD, Watch

_FIRST = 2  # iterations that load kernels
_WARM_UP, _WARM_UP_S = 10, 0.3  # the next ones choose among kernels
_FEWEST = 5  # iterations that are measured


def _train(gpu, architecture, seed, most_times, seconds, calibration, turn):
    """(card, figures), as measure_apart() of a core."""
    sized = Sized(architecture, seed, most_times)
    card, job = sized.card, sized.card["job"]
    task = sized.build()
    turn.wait("context")
    watch = Watch(gpu.index)
    task.move("cuda")
    optimizer = OPTIMIZERS[job["optimizer"]](task.model.parameters())
    torch.cuda.synchronize()
    turn.wait("load", watch.tells_apart())
    for _ in range(_FIRST):
        step(task, optimizer)
        torch.cuda.synchronize()
    turn.wait("turn")
    read_bytes = int(4 * card["input_elements"]) if sized.reads else 0
    pipeline = Pipeline(job["load_s"], read_bytes, job["loads_ahead"])
    rounds = [calibration.round()]
    watch.start()
    _warm_up(turn, lambda: _iterate(task, optimizer, pipeline))
    watch.begin()
    window = _Window(job["load_s"] if job["loads_ahead"] else 0)
    while window.wants_more(seconds) or not watch.enough(seconds):
        window.add(lambda: _iterate(task, optimizer, pipeline))
    watch.end()
    rounds.append(calibration.round())
    traced = kernels.traced(lambda: _step(task, optimizer)) if kernels.can_tell() else None
    figures = window.figures(watch.percent(), traced)
    return card, {**figures, "memory_bytes": watch.bytes, "calibration_s": statistics.median(rounds), **gpu.features}


def measure_all(gpu, jobs, given, calibration, limit_s, tell):
    """Of each (architecture, seed): tell(number, (card, figures), why it failed). A line on how long
    that took."""
    turns = Turns(ahead(), limit_s)
    turns.run([partial(_train, gpu, *job, given.grow_batches, given.seconds, calibration) for job in jobs], tell)
    return turns.spent()


def _warm_up(turn, iterate):
    until, warmed = time.monotonic() + _WARM_UP_S, 0
    while warmed < _WARM_UP or time.monotonic() < until:
        iterate()
        warmed += 1
    turn.ask("window")
    while not turn.granted():
        iterate()  # so that the GPU keeps its clocks


def _step(task, optimizer):
    step(task, optimizer)
    torch.cuda.synchronize()


def _iterate(task, optimizer, pipeline):
    """How long it took once its data was there, until it was done on the GPU, too."""
    pipeline.batch()
    waited, at = waited_s(), time.monotonic()
    _step(task, optimizer)
    return own_s(time.monotonic() - at, waited_s() - waited, 0)


class _Window:
    def __init__(self, ahead_s):
        self._ahead_s = ahead_s
        self._times, self._steps = [], []
        self._wall_s = self._waited_s = 0.0

    def wants_more(self, seconds):
        return len(self._times) < _FEWEST or self._wall_s < seconds

    def add(self, iterate):
        waited, at = waited_s(), time.monotonic()
        step_s = iterate()
        wall_s = time.monotonic() - at
        waited = waited_s() - waited
        self._wall_s += wall_s
        self._waited_s += waited
        self._times.append(own_s(wall_s, waited, self._ahead_s))
        self._steps.append(step_s)

    def figures(self, percent, traced):
        """Of the driver's percent of the time, where kernels were not traced."""
        own_wall_s = own_s(self._wall_s, self._waited_s, self._ahead_s * len(self._times))
        if percent is None and traced is None:
            raise RuntimeError(NOTHING_TOLD)
        # The driver tells whole percents: nobody uses none at all.
        told_s = None if percent is None else self._wall_s * max(percent, 0.1) / 100
        busy_s = traced.busy_s * len(self._times) if traced else told_s
        return {
            "utilisation_milli": round(min(1000, 1000 * busy_s / own_wall_s), 1),
            "kernels": traced.kernels if traced else "",
            "driver_milli": "" if told_s is None else round(min(1000, 1000 * told_s / own_wall_s), 1),
            "iteration_s": statistics.median(self._times),
            "busy_s": busy_s / len(self._times),
            "step_s": statistics.median(self._steps),
            "measured_iterations": len(self._times),
        }
