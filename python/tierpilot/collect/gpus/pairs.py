"""Measures two trainings beside each other on a GPU: what each keeps of its iterations per second.

Several pairs get ready at once; then all but the one or two that are measured stand still.
"""

import os
import statistics
import time

from ..pairs import GPU_OF_JOB, drawn_pairs, pair_row, tell_pair_left_out, tell_pairs_progress
from .running import GpuTraining, end_all

ROUNDS = 3
CORES_OF_PAIR = 4  # of each training its own thread, and the one that PyTorch has for gradients
_MOST_PAIRS = 4  # that get ready at once
_SETTLE_S, _SETTLE = 0.02, 3  # after a change, before anything counts; iterations, so that no batch lies ready
_FEWEST = 3  # iterations in a phase
_LONGEST = 6  # times the wanted seconds, until there are as many
_LOOK_S = 0.005


class _Pair:
    """`error`: why it cannot be measured."""

    def __init__(self, gpu, seed, one, other, most_times, limit_s):
        self.seed, self.of, self.error = seed, (one, other), None
        self._of_training = most_times, limit_s
        self._gpu = gpu
        self._trainings = []

    def begin(self):
        for job in self.of:
            self._trainings.append(GpuTraining(self._gpu, *job, *self._of_training))

    def get_ready(self):
        self._try(lambda: [training.get_ready() for training in self._trainings])

    def measured(self, seconds):
        """Cells of each of the two; None: it failed."""
        cells = None if self.error else self._try(lambda: _measured(self._trainings, seconds))
        self.end()
        return cells

    def end(self):
        end_all(self._trainings)

    def _try(self, work):
        try:
            return work()
        except RuntimeError as error:
            self.error = error
            self.end()  # so that it disturbs no other pair


def _measured(trainings, seconds):
    alone, together = ([], []), ([], [])
    # In turn, so that a GPU that becomes slower does so for both.
    for _ in range(ROUNDS):
        for training, rates in zip(trainings, alone):
            rates += _phase([training], seconds)[0]
        for rates, found in zip(together, _phase(trainings, seconds)):
            rates += found
    return [_cells(*of_training, seconds) for of_training in zip(trainings, alone, together)]


def _phase(running, seconds):
    """Iterations per second of each of those that run, where it came to any; the others stand still."""
    for training in running:
        training.go()
    _wait(running, _SETTLE, _SETTLE_S, seconds)
    before = [training.counts() for training in running]
    _wait(running, _FEWEST, seconds, seconds)
    after = [training.counts() for training in running]
    for training in running:
        training.halt()
    for training in running:
        training.stood_still()
    # By the ends of iterations, so that no part of one counts.
    spans = [(now[0] - then[0], now[1] - then[1]) for then, now in zip(before, after)]
    return [[iterations / wall_s] if iterations > 0 else [] for iterations, wall_s in spans]


def _wait(running, iterations, least_s, seconds):
    """Until each has so many more, and for so long; but not for ever."""
    since, began_s = [training.counts()[0] for training in running], time.monotonic()
    while (waited_s := time.monotonic() - began_s) < _LONGEST * seconds:
        done = all(training.counts()[0] - then >= iterations for training, then in zip(running, since))
        if done and waited_s >= least_s:
            return
        time.sleep(_LOOK_S)


def _cells(training, alone, together, seconds):
    if not alone or not together:
        raise RuntimeError("too slow: no iterations in its time")
    rate = statistics.median(alone)
    told, traced = training.busy_parts(rate, seconds)
    return {
        "model": training.architecture,
        "architecture_seed": training.seed,
        "batch": training.card["batch"],
        "milli": round(min(1000, 1000 * told), 1),
        "traced_milli": "" if traced is None else round(1000 * traced, 1),
        "memory_bytes": training.memory_bytes,
        "traffic_bytes_s": training.card["traffic_bytes"] * rate,
        "alone": rate,
        "together": statistics.median(together),
        # Of single rounds alone, as a part: what one measurement may be off by.
        "spread": statistics.stdev(alone) / rate if len(alone) > 1 else 0,
    }


def collect_gpu_pairs(gpu, chosen, given, limit_s, write):
    """Rows of drawn pairs go to `write`. How many were left out. No process is left behind."""
    pairs = [_Pair(gpu, *drawn, given.grow_batches, limit_s) for drawn in drawn_pairs(chosen, given)]
    at_once = max(1, min(_MOST_PAIRS, len(os.sched_getaffinity(0)) // CORES_OF_PAIR))
    ended = failed = 0

    def tell(pair, cells):
        nonlocal ended, failed
        ended += 1
        if cells is None:
            failed += 1
            tell_pair_left_out(*pair.of, pair.error)
            return
        write(pair_row(gpu.features["gpu_name"], pair.seed, cells, GPU_OF_JOB))
        tell_pairs_progress(ended, given, *pair.of)

    for first in range(0, len(pairs), at_once):
        _measure(pairs[first : first + at_once], given.seconds, tell)
    return failed


def _measure(pairs, seconds, tell):
    """One after another, when all have got ready."""
    try:
        for pair in pairs:
            pair.begin()
        for pair in pairs:
            pair.get_ready()
        for pair in pairs:
            tell(pair, pair.measured(seconds))
    finally:
        for pair in pairs:
            pair.end()
