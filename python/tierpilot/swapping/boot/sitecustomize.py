"""Starts swapping, or recording, in a program that says nothing of it: tierpilot-swap run and tiertool swap record put
this folder first in PYTHONPATH, and Python imports what is called so before the program."""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_awaited = []
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))


def _start(_):
    import atexit
    import json
    import warnings

    from tierpilot.swapping import Swap

    swap = Swap(
        policy=os.environ.get("TIERPILOT_SWAP_POLICY") or "swap",
        plan_file=os.environ.get("TIERPILOT_SWAP_PLANS"),
        recompute=bool(os.environ.get("TIERPILOT_SWAP_RECOMPUTE")),
        states={"": None, "0": False}.get(os.environ.get("TIERPILOT_SWAP_STATES", ""), True),
        device=os.environ.get("TIERPILOT_SWAP_DEVICE"),
        lazy=True,  # processes that train nothing open nothing
    )
    _in_main_thread(swap.__enter__)
    report = os.environ.get("TIERPILOT_SWAP_REPORT")

    def write_report():
        if not swap.opened:
            return
        try:
            with open(report, "a", encoding="utf-8") as file:
                file.write(json.dumps(swap.statistics()) + "\n")
        except OSError as error:
            warnings.warn(f"tierpilot-swap run: the report cannot be written: {error}", RuntimeWarning, 2)

    if report:
        atexit.register(write_report)


def _in_main_thread(work):
    """Now, or as soon as that thread runs Python code, where another one has imported PyTorch first: before it can have done
    anything with it."""
    import ctypes
    import threading

    if threading.current_thread() is threading.main_thread():
        work()
        return

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    def called(_):
        work()
        return 0

    _awaited.append(called)  # nobody else has it
    add = ctypes.pythonapi.Py_AddPendingCall
    add.restype, add.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]
    if add(ctypes.cast(called, ctypes.c_void_p), None) != 0:
        import warnings

        warnings.warn("tierpilot-swap run: nothing is swapped, as another thread has imported PyTorch: import it in the "
                      "main thread first", RuntimeWarning, 2)


def _run_the_hidden_one():
    """The sitecustomize of the system, which this one stands before."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _record(_):
    from tierpilot.swapping.record import Recorder

    # Of several processes the last one to get so far counts: each writes the log as a whole.
    Recorder(os.environ["TIERPILOT_SWAP_RECORD"], int(os.environ["TIERPILOT_SWAP_RECORD_STEP"])).watch()


def _after_torch(then):
    if _PACKAGES not in sys.path:
        sys.path.append(_PACKAGES)
    from tierpilot.hooks.after_import import after_import

    after_import("torch", then)


# Recording first: a task with room for swapping has a budget beside it.
if os.environ.get("TIERPILOT_SWAP_RECORD"):
    _after_torch(_record)
elif os.environ.get("TIERPILOT_SWAP_BUDGET"):
    _after_torch(_start)
_run_the_hidden_one()
