"""Warnings, at the line of the program that brought them about."""

import sys
import warnings

_NOT_THE_PROGRAM = "tierpilot", "torch"


def warn(text):
    """Whatever of PyTorch and of this lies between."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_PROGRAM:
        level, frame = level + 1, frame.f_back
    warnings.warn(f"tierpilot.swap: {text}", RuntimeWarning, level)
