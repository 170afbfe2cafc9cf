"""What part of the time a GPU computes for a training."""

from . import kernels
from .watch import NOTHING_TOLD, Watch

_LEAST = 0.001  # the driver tells whole percents: nobody uses none at all


def busy_parts(gpu, iterate, step, rate, seconds):
    """Of this process, which has the GPU for itself: as its driver tells while it calls iterate() for `seconds`, or
    until that has told enough, and as its kernels do, at so many iterations per second (None: they are not traced).
    Where the driver tells nothing, kernels stand for it. step() is without a wait for data. The driver counts short
    gaps between kernels, too, in which nobody else gets the GPU. RuntimeError: nothing is told."""
    percent = _percent(gpu, iterate, seconds)
    traced = kernels.traced(step) if kernels.can_tell() else None
    part = min(1, traced.busy_s * rate) if traced else None
    if percent is None and part is None:
        raise RuntimeError(NOTHING_TOLD)
    return part if percent is None else max(_LEAST, percent / 100), part


def _percent(gpu, iterate, seconds):
    watch = Watch(gpu.index)
    watch.start()
    watch.begin()
    while not watch.enough(seconds):
        iterate()
    watch.end()
    return watch.percent()
