"""How long the GPU computes in an iteration, of what CUDA's tracing (CUPTI) tells of each kernel. The
driver's own percent is of whole percents and some tenths of a second."""

import time
from dataclasses import dataclass

try:
    from torch.profiler import ProfilerActivity, profile, supported_activities
except ImportError:  # before 1.8.1
    supported_activities = set

_FEWEST, _MOST = 3, 30  # iterations
_SECONDS = 0.12


def can_tell():
    return any(activity.name == "CUDA" for activity in supported_activities())


@dataclass
class Traced:
    """Of a call, on average over some: seconds in which the GPU computed, and how many kernels and copies it had."""

    busy_s: float
    kernels: float


def traced(iterate):
    """None: nothing was told. `iterate` returns when the GPU is done. From the first trace on each launch of a process
    costs more of its host, so that what is to be timed comes before."""
    with profile(activities=[ProfilerActivity.CUDA]):
        iterate()  # what has to be loaded for it takes long
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        began_s, count = time.monotonic(), 0
        while count < _FEWEST or (count < _MOST and time.monotonic() - began_s < _SECONDS):
            iterate()
            count += 1
    spans = _spans_ns(trace)
    return Traced(covered_ns(spans) / 1e9 / count, len(spans) / count) if spans else None


def covered_ns(spans):
    """In which at least one of them ran: several streams' may do so at once."""
    covered = until = 0
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, until))
        until = max(until, end)
    return covered


def _spans_ns(trace):
    results = trace.profiler.kineto_results
    return [_span_ns(event) for event in results.events() if event.device_type().name == "CUDA"]


def _span_ns(event):
    if hasattr(event, "start_ns"):
        return event.start_ns(), event.start_ns() + event.duration_ns()
    return 1000 * event.start_us(), 1000 * (event.start_us() + event.duration_us())
