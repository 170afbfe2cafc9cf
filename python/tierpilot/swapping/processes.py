"""Forks and the end of the process, for all that it has of Swap."""

import atexit
import os
import warnings
import weakref

from . import steps

_all = weakref.WeakSet()


def know(swap):
    _all.add(swap)


def weakly(method):
    """A function that does what the method does, and gives {} once nobody has its object, which this does not keep."""
    method = weakref.WeakMethod(method)

    def called():
        alive = method()
        return {} if alive is None else alive()

    return called


def _forked():
    for swap in list(_all):
        swap._after_fork()
    steps.take_charge(None)


def _ending():
    for swap in list(_all):
        try:
            swap.keep()
        except OSError as error:
            warnings.warn(f"tierpilot.swap: {error}", RuntimeWarning, 2)


os.register_at_fork(after_in_child=_forked)
atexit.register(_ending)
