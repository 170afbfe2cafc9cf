"""What part of the time a GPU computes for a training."""

import time

from . import kernels
from .watch import Watch

_LEAST = 0.001  # the driver tells whole percents: nobody uses none at all


def busy_part(gpu, iterate, step, seconds):
    """Of this process, which has the GPU for itself and calls iterate() for `seconds` meanwhile, or until its driver
    has told enough; step() is that without a wait for data. RuntimeError: nothing is told."""
    kernels_s = kernels.kernels_s(step) if kernels.can_tell() else None
    return _told(gpu, iterate, seconds) if kernels_s is None else min(1, kernels_s * _rate(iterate, seconds))


def _rate(iterate, seconds):
    began_s, count = time.monotonic(), 0
    while count == 0 or time.monotonic() - began_s < seconds:
        iterate()
        count += 1
    return count / (time.monotonic() - began_s)


def _told(gpu, iterate, seconds):
    watch = Watch(gpu.index)
    watch.start()
    watch.begin()
    while not watch.enough(seconds):
        iterate()
    watch.end()
    return max(_LEAST, watch.percent() / 100)
