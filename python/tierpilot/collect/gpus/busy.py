"""What part of the time a GPU computes for a training."""

from .watch import Watch

_LEAST = 0.001  # the driver tells whole percents: nobody uses none at all


def busy_part(gpu, iterate, seconds):
    """Of this process, which has the GPU for itself and calls iterate() meanwhile, by its driver: for `seconds` or
    until that has told enough. RuntimeError: it told nothing."""
    watch = Watch(gpu.index)
    watch.start()
    watch.begin()
    while not watch.enough(seconds):
        iterate()
    watch.end()
    return max(_LEAST, watch.percent() / 100)
