"""In place of a PyTorch with CUDA: its device is the processor. Who moves something there is a client
of the GPU that it may use, as the driver's stand-in (tests/fake_nvml) reads it. Of the environment:

  STAND_IN_LOSES    this GPU is lost then
  STAND_IN_CPUS     so many may be used
  STAND_IN_SLOW_S   a context takes so long, and so do the first iterations, at the end of each of
                    which stands "PID BEGAN ENDED" in the file "ends"; each process has its number of bytes more
  STAND_IN_STEP_S   an iteration computes so long, on a GPU that belongs to one process at a time
  STAND_IN_HIDDEN   the driver knows processes by other numbers
  STAND_IN_DIES_AT  "N,...": the first process that is so far dies: after N ends
  STAND_IN_HANGS_AT the same, but that it does nothing from then on
  STAND_IN_TRACES   kernels can be traced
  STAND_IN_SAMPLE_S its driver takes a sample so often, in place of once to six times in a second
"""

import fcntl
import importlib.util
import os
import signal
import sys
import threading
import time
import types

CLIENT_BYTES = 3 << 30
_LOADING = 3  # ends: the model is there, and two iterations
_slow_s = float(os.environ.get("STAND_IN_SLOW_S", 0))
_step_s = float(os.environ.get("STAND_IN_STEP_S", 0))
_ends = {}  # by process


def _write(name, text):
    with open(os.path.join(os.environ["FAKE_NVML"], name), "a") as file:
        file.write(text)


def _number():
    if not os.environ.get("STAND_IN_HIDDEN"):
        return os.getpid()
    # A thread's can be asked for like a process's, and lives as long.
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    return thread.native_id


def _become_client():
    if os.getpid() not in _ends:
        _ends[os.getpid()] = 0
        time.sleep(_slow_s)
        own_bytes = CLIENT_BYTES + (os.getpid() if _slow_s else 0)
        _write("clients", f"{os.environ['CUDA_VISIBLE_DEVICES']} {_number()} {own_bytes}\n")
        if lost := os.environ.get("STAND_IN_LOSES"):
            _write("lost", f"{lost}\n")


def _end(*_):
    began_s = time.monotonic()
    ends = _ends[os.getpid()]
    _ends[os.getpid()] += 1
    if _is_told("STAND_IN_DIES_AT", ends) and _is_first(f"died {ends}"):
        os.kill(os.getpid(), signal.SIGKILL)
    if _is_told("STAND_IN_HANGS_AT", ends) and _is_first(f"hangs {ends}"):
        signal.pause()
    if _step_s:
        with open(os.path.join(os.environ["FAKE_NVML"], "turn"), "w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            time.sleep(_step_s)
    if _slow_s:
        time.sleep(_slow_s if ends < _LOADING else 0)
        _write("ends", f"{os.getpid()} {began_s} {time.monotonic()}\n")


def _is_told(name, ends):
    return str(ends) in os.environ.get(name, "").split(",")


def _is_first(folder):
    try:
        os.mkdir(os.path.join(os.environ["FAKE_NVML"], folder))
    except FileExistsError:
        return False
    return True


def _moving(to):
    def moved(self, *where, **named):
        if where and str(where[0]).startswith("cuda"):
            _become_client()
            where = ("cpu", *where[1:])
        return to(self, *where, **named)

    return moved


class _Kernel:
    """Of a tenth of a millisecond, and one of another stream beside half of it."""

    def __init__(self, number, stream):
        self._at_ns = 1_000_000 * number + 50_000 * stream

    def start_ns(self):
        return self._at_ns

    def duration_ns(self):
        return 100_000


class _Trace:
    """What is traced from one synchronisation to the next: two kernels."""

    def __init__(self, activities):
        assert [activity.name for activity in activities] == ["CUDA"]

    def __enter__(self):
        self._from = _ends[os.getpid()]
        return self

    def __exit__(self, *_):
        count = _ends[os.getpid()] - self._from
        self._kernels = [_Kernel(number, stream) for number in range(count) for stream in range(2)]

    @property
    def profiler(self):
        return types.SimpleNamespace(kineto_results=types.SimpleNamespace(events=lambda: self._kernels))


def _stand_in(torch):
    torch.version.cuda = "11.8"
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = _end
    torch.Tensor.to = _moving(torch.Tensor.to)
    torch.nn.Module.to = _moving(torch.nn.Module.to)
    if os.environ.get("STAND_IN_TRACES"):
        import torch.profiler

        activity = torch.profiler.ProfilerActivity.CUDA
        _Kernel.device_type = lambda self: activity
        torch.profiler.profile = _Trace
        torch.profiler.supported_activities = lambda: {activity}


def _sample_often(watch):
    if sample_s := float(os.environ.get("STAND_IN_SAMPLE_S", 0)):
        watch._PERIOD_S, watch._LONGEST_SAMPLE_S, watch._LONGEST_S = sample_s / 10, sample_s, 2 * sample_s


_CHANGED = {"torch": _stand_in, "tierpilot.collect.gpus.watch": _sample_often}


class _WhenImported:
    """Not every Python that starts needs PyTorch, which takes a second."""

    _looks = False

    def find_spec(self, name, *_):
        if name not in _CHANGED or self._looks:
            return None
        self._looks = True
        spec = importlib.util.find_spec(name)
        self._looks = False
        load = spec.loader.exec_module

        def loaded(module):
            load(module)
            _CHANGED[name](module)

        spec.loader.exec_module = loaded
        return spec


sys.meta_path.insert(0, _WhenImported())
if cpus := os.environ.get("STAND_IN_CPUS"):
    os.sched_getaffinity = lambda *_: set(range(int(cpus)))
