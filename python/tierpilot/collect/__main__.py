"""python3 -m tierpilot.collect: measures training configurations on one core or GPU, for predictors.

`tierctl predictor collect` runs it.
"""

import argparse
import json
import os
import platform
import signal
import sys
import warnings

# Until there is something to keep, Ctrl-C just ends it, without a traceback of imports.
_INTERRUPTIBLE = signal.getsignal(signal.SIGINT) != signal.SIG_IGN
if _INTERRUPTIBLE:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    import torch
except ImportError:
    print("error: collecting needs PyTorch: install python3-torch", file=sys.stderr)
    sys.exit(4)

from .architectures import ARCHITECTURES
from .calibration import Calibration
from .cores import core_beside
from .gpus.device import Gpu
from .gpus.measure import measure_all
from .gpus.nvml import NvmlError
from .gpus.pairs import collect_gpu_pairs
from .gpus.sizes import MOST_TIMES
from .measure import measure_apart
from .output import Output, OutputError
from .pairs import GPU_OF_JOB, collect_pairs
from .pairs import columns as pair_columns
from .table import COLUMNS, GPU_COLUMNS, row

_STOPPED = 130  # as a shell says of a program that Ctrl-C ended


def _number(word):
    """Neither NaN nor infinite."""
    value = float(word)
    if not 0 < value < 1e18:
        raise ValueError
    return value


def _arguments():
    parser = argparse.ArgumentParser(prog="tierctl predictor collect")
    parser.add_argument("--out", required=True, metavar="FILE.csv")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--configurations", type=int, default=500, metavar="N")
    parser.add_argument("--seconds", type=_number, default=1.0, metavar="S")
    parser.add_argument("--architectures", default="", metavar="NAME,...")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cpu", type=int, default=None, metavar="N")
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda[:N]")
    parser.add_argument("--grow-batches", type=_number, default=MOST_TIMES, metavar="N")
    parser.add_argument("--time-limit", type=_number, default=300.0, metavar="S")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--float32-ops-per-s", type=_number, default=None, metavar="N")
    return parser.parse_args()


def _chosen(names):
    chosen = [name for name in names.split(",") if name] or list(ARCHITECTURES)
    for name in chosen:
        if name not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            print(f"error: architecture '{name}' is unknown; known are {known}", file=sys.stderr)
            sys.exit(2)
    return chosen


def _machine(cpu, gpu):
    model = "unknown"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        **(gpu.machine() if gpu else {"engine": "cpu"}),
        "cpu_model": model,
        **({} if cpu is None else {"cpu": cpu}),
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": 1,
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    }


def main():
    given = _arguments()
    chosen = _chosen(given.architectures)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="torch")
    warnings.filterwarnings("ignore", message="Sparse invariant checks")
    try:
        gpu = None if given.device == "cpu" else Gpu(given.device)
    except NvmlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    if gpu and given.pairs and given.cpu is not None:
        print("error: a pair on a GPU is measured with cores for each of the two: leave out --cpu", file=sys.stderr)
        return 2
    # On a GPU a training has its own threads beside it, for which one core is too few.
    cpu = max(os.sched_getaffinity(0)) if given.cpu is None and not gpu else given.cpu
    beside = None if cpu is None else core_beside(cpu)  # of those that may be used until it is held to one
    try:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
    except OSError as error:
        print(f"error: CPU {cpu} cannot be used: {error.strerror}", file=sys.stderr)
        return 2
    try:
        return _collect(given, chosen, cpu, beside, gpu)
    except OutputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _collect(given, chosen, cpu, beside, gpu):
    limit_s = given.time_limit + given.seconds  # of a part of a training's work
    failed, stopped = 0, False
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    out = Output(given.out, given.overwrite)
    try:
        if _INTERRUPTIBLE:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if given.pairs:
            out.head(pair_columns(GPU_OF_JOB) if gpu else pair_columns())
            if gpu:
                failed = collect_gpu_pairs(gpu, chosen, given, limit_s, out.row)
            else:
                failed = collect_pairs(chosen, given, limit_s, cpu, beside, out.row)
        else:
            out.head(COLUMNS + (GPU_COLUMNS if gpu else []))
            jobs = [(chosen[i % len(chosen)], given.seed * 100_000 + i) for i in range(given.configurations)]
            if gpu:
                failed = _collect_on_gpu(gpu, jobs, given, limit_s, out.row)
            else:
                failed = _collect_trainings(jobs, given, limit_s, out.row)
    except KeyboardInterrupt:
        stopped = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what was measured is kept first
    if out.rows:
        out.keep(_described(given, cpu, beside, gpu))
    else:
        out.drop()
    return _tell_end(given, out.rows, failed, stopped)


def _tell_end(given, measured, failed, stopped):
    what = "pairs" if given.pairs else "configurations"
    where = given.out if measured else f"{given.out} is not written"
    if stopped:
        line = "\n" if sys.stderr.isatty() and measured else ""  # below the progress
        print(f"{line}stopped: {measured} of {given.configurations} {what} measured: {where}", file=sys.stderr)
        return _STOPPED
    if given.json:
        print(json.dumps({"schema": 1, "table": given.out, "measured": measured, "left_out": failed}))
    else:
        print(f"{measured} {what} measured, {failed} left out: {where}")
    return 0 if measured else 1


def _collect_trainings(jobs, given, limit_s, write):
    """Rows go to `write`. How many were left out."""
    calibration = Calibration()
    failed = 0
    for i, (architecture, seed) in enumerate(jobs):
        try:
            card, figures = measure_apart(architecture, seed, given.seconds, calibration, limit_s)
        except RuntimeError as error:
            failed += 1
            _tell_left_out(architecture, seed, error)
            continue
        write(row(architecture, seed, card, figures))
        _tell_progress(i + 1, given, architecture)
    return failed


def _collect_on_gpu(gpu, jobs, given, limit_s, write):
    """As _collect_trainings(), in the order in which they are measured."""
    ended = failed = 0

    def tell(number, measured, error):
        nonlocal ended, failed
        ended += 1
        architecture, seed = jobs[number]
        if error:
            failed += 1
            _tell_left_out(architecture, seed, error)
            return
        write(row(architecture, seed, *measured))
        _tell_progress(ended, given, architecture)

    spent = measure_all(gpu, jobs, given, Calibration(), limit_s, tell)
    if spent:
        print(spent, file=sys.stderr)
    return failed


def _tell_left_out(architecture, seed, error):
    print(f"left out: {architecture}, seed {seed}: {error}", file=sys.stderr)


def _tell_progress(ended, given, architecture):
    if sys.stderr.isatty():
        print(f"\r{ended}/{given.configurations} {architecture:20}", end="", file=sys.stderr)


def _described(given, cpu, beside, gpu):
    machine = _machine(cpu, gpu)
    if given.float32_ops_per_s:
        machine["float32_ops_per_s"] = given.float32_ops_per_s
    if given.pairs and not gpu:
        machine["cpu_beside"] = beside
    kind = "measured pairs of trainings" if given.pairs else "measured trainings"
    return {"schema": 1, "kind": kind, "machine": machine}


if __name__ == "__main__":
    sys.exit(main())
