"""python3 -m tierpilot.collect: measures training configurations on one core or GPU, for predictors.

`tierctl predictor collect` runs it. PyTorch takes seconds to import: it comes after what can be refused without it.
"""

import argparse
import os
import signal
import sys

# Until there is something to keep, Ctrl-C just ends it, without a traceback of imports.
_INTERRUPTIBLE = signal.getsignal(signal.SIGINT) != signal.SIG_IGN
if _INTERRUPTIBLE:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from .cores import core_beside  # noqa: E402
from .gpus.device import Gpu  # noqa: E402
from .gpus.nvml import NvmlError  # noqa: E402
from .output import OutputError, refuse_what_is_there  # noqa: E402


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
    parser.add_argument("--grow-batches", type=_number, default=None, metavar="N")
    parser.add_argument("--time-limit", type=_number, default=300.0, metavar="S")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--float32-ops-per-s", type=_number, default=None, metavar="N")
    return parser.parse_args()


def _held_to_one_core(wanted):
    """(that core; one beside it, of those that could be used before)."""
    cpu = max(os.sched_getaffinity(0)) if wanted is None else wanted
    beside = core_beside(cpu)
    os.sched_setaffinity(0, {cpu})
    return cpu, beside


def main():
    given = _arguments()
    # On a GPU a training has its own threads beside it, for which one core is too few.
    on_gpu = given.device != "cpu"
    if on_gpu and given.pairs and given.cpu is not None:
        print("error: a pair on a GPU is measured with cores for each of the two: leave out --cpu", file=sys.stderr)
        return 2
    try:
        refuse_what_is_there(given.out, given.overwrite)
        cpu, beside = (None, None) if on_gpu and given.cpu is None else _held_to_one_core(given.cpu)
    except OutputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: CPU {given.cpu} cannot be used: {error.strerror}", file=sys.stderr)
        return 2
    try:
        gpu = Gpu(given.device) if on_gpu else None
    except NvmlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    try:
        from .collecting import collect
    except ImportError as error:
        if error.name != "torch":
            raise
        print("error: collecting needs PyTorch: install python3-torch", file=sys.stderr)
        return 4
    return collect(given, cpu, beside, gpu, _INTERRUPTIBLE)


if __name__ == "__main__":
    sys.exit(main())
