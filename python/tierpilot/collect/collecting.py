"""The run of a collection: what it measures, where it goes, what is told."""

import json
import os
import platform
import signal
import sys
import warnings

import torch

from .architectures import ARCHITECTURES
from .calibration import Calibration
from .gpus.measure import measure_all
from .gpus.nvml import NvmlError
from .gpus.pairs import collect_gpu_pairs
from .gpus.pytorch import prepare_pytorch
from .gpus.sizes import MOST_TIMES
from .measure import measure_apart
from .output import Output, OutputError
from .pairs import GPU_OF_JOB, collect_pairs
from .pairs import columns as pair_columns
from .table import COLUMNS, GPU_COLUMNS, row

_STOPPED = 130  # as a shell says of a program that Ctrl-C ended


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
        **({**gpu.machine(), "cuda": torch.version.cuda} if gpu else {"engine": "cpu"}),
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


def collect(given, cpu, beside, gpu, interruptible):
    """The exit status. `given`: the words of the command; `cpu`: the core that this process is held to, and the one
    beside it; None: to none; `gpu`: that is measured; None: a core is."""
    chosen = _chosen(given.architectures)
    if given.grow_batches is None:
        given.grow_batches = MOST_TIMES
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="torch")
    warnings.filterwarnings("ignore", message="Sparse invariant checks")
    try:
        if gpu:
            prepare_pytorch(gpu)
    except NvmlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    try:
        return _measured(given, chosen, cpu, beside, gpu, interruptible)
    except OutputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _measured(given, chosen, cpu, beside, gpu, interruptible):
    limit_s = given.time_limit + given.seconds  # of a part of a training's work
    failed, stopped = 0, False
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    out = Output(given.out, given.overwrite)
    try:
        if interruptible:
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
