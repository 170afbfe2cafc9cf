"""How long the GPU computes in an iteration, of what CUDA's tracing (CUPTI) tells of each kernel. The
driver's own percent is of whole percents and some tenths of a second."""

import time

import torch

try:
    from torch.profiler import ProfilerActivity, profile, supported_activities
except ImportError:  # before 1.8.1
    supported_activities = set

_FEWEST, _MOST = 3, 30  # iterations
_SECONDS = 0.12


def can_tell():
    return any(activity.name == "CUDA" for activity in supported_activities())


def get_ready():
    """What takes a second once in a process."""
    with profile(activities=[ProfilerActivity.CUDA]):
        torch.cuda.synchronize()


def kernels_s(iterate):
    """Seconds of the GPU in one call, on average over some; None: nothing was told. `iterate` returns
    when the GPU is done."""
    with profile(activities=[ProfilerActivity.CUDA]) as traced:
        began_s, count = time.monotonic(), 0
        while count < _FEWEST or (count < _MOST and time.monotonic() - began_s < _SECONDS):
            iterate()
            count += 1
    busy_s = covered_ns(_spans_ns(traced)) / 1e9
    return busy_s / count if busy_s > 0 else None


def covered_ns(spans):
    """In which at least one of them ran: several streams' may do so at once."""
    covered = until = 0
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, until))
        until = max(until, end)
    return covered


def _spans_ns(traced):
    results = traced.profiler.kineto_results
    return [_span_ns(event) for event in results.events() if event.device_type().name == "CUDA"]


def _span_ns(event):
    if hasattr(event, "start_ns"):
        return event.start_ns(), event.start_ns() + event.duration_ns()
    return 1000 * event.start_us(), 1000 * (event.start_us() + event.duration_us())
