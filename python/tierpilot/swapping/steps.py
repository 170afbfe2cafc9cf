"""Tells a Swap when an optimiser steps, whatever wraps the step."""

import functools
import gc
import threading
import types
import weakref

import torch

from ..hooks import torch_loop

_charge = None  # a reference to the States that hear of it, which does not hold them
_thread = threading.local()
_watched = {}  # by the function that was there before


def take_charge(states):
    """From now on these `states` hear of all steps in this process; None: nobody does."""
    global _charge
    _charge = None if states is None else weakref.ref(states)
    if states is not None and not _watched:
        watch()
        # Learning-rate schedules and others have wrapped steps of optimisers, and hold what they wrapped.
        for thing in gc.get_objects():
            if issubclass(type(thing), torch.optim.Optimizer):
                _replace_wrapped(thing.__dict__.get("step"))


def watch():
    """Classes that were defined since, too."""
    classes = torch.optim.Optimizer.__subclasses__()
    while classes:
        found = classes.pop()
        classes += found.__subclasses__()
        step = found.__dict__.get("step")
        if not isinstance(step, types.FunctionType):
            continue
        calls = torch_loop.beneath(step)  # Tierpilot's own hook, which parts of a step are not for
        if calls and not hasattr(calls[0], "tierpilot_watches"):
            calls[0] = _watching(calls[0])
        elif not calls and not hasattr(step, "tierpilot_watches"):
            found.step = _watching(step)


def _watching(step):
    @functools.wraps(step)
    def watching(self, /, *arguments, **named):
        states = _charge and _charge()
        if states is None or getattr(_thread, "inside", False):
            return step(self, *arguments, **named)
        _thread.inside = True
        try:
            return states.step(self, step, arguments, named)
        finally:
            _thread.inside = False

    watching.tierpilot_watches = True
    _watched[step] = watching
    return watching


def _replace_wrapped(wrapper):
    """In what a wrapper has closed over, and in what that has."""
    function = getattr(wrapper, "__func__", wrapper)
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:  # nothing yet
            continue
        if not isinstance(held, types.FunctionType):
            continue
        if held in _watched:
            cell.cell_contents = _watched[held]
        elif not hasattr(held, "tierpilot_watches"):
            _replace_wrapped(held)
