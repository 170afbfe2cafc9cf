"""Which parts of a model are segments, and their calls: blocks of a net's sequences, and short runs of
layers in a sequence without blocks."""

import functools
import math
import os
import threading
import weakref

import torch
from torch.nn import Module, ModuleList, Sequential

from . import program_hooks
from .engine import in_backward, traced
from .recompute import recomputing

_SEQUENCES = (Sequential, ModuleList)


def _leaf(module):
    return next(module.children(), None) is None


def blocks_of(model):
    """The segments of a model, in order: modules, and (sequence, first, end) for runs of layers."""
    found = []
    for module in [model] if isinstance(model, _SEQUENCES) else _outermost(model):
        _divide(module, found)
    return found


def _outermost(module):
    for child in module.children():
        if isinstance(child, _SEQUENCES):
            yield child
        else:
            yield from _outermost(child)


def _divide(sequence, found):
    parts = list(sequence)
    leaves = sum(map(_leaf, parts))
    length = max(2, math.isqrt(leaves))
    begin = None
    for at, part in enumerate([*parts, None]):
        runs = part is not None and _leaf(part) and type(sequence).forward is Sequential.forward
        if runs and begin is None:
            begin = at
        if begin is not None and (not runs or at - begin == length):
            if at - begin > 1:  # one layer saves what computing it again takes
                found.append((sequence, begin, at))
            begin = at if runs else None
        if part is None or _leaf(part):
            continue
        if isinstance(part, _SEQUENCES) and not all(map(_leaf, part)):
            _divide(part, found)
        else:
            found.append(part)


class Segments:
    """The segments of the models that one Swap has met. `run(name, modules, work, inputs, named)`
    computes one."""

    def __init__(self, run):
        self._run = run
        self._met = weakref.WeakSet()
        self._modules = weakref.WeakKeyDictionary()  # to its name
        self._runs = weakref.WeakKeyDictionary()  # sequence to (its length, [(begin, end, name)])
        self._meeting = threading.Lock()
        self._busy = threading.Lock()  # one at a time, none within another
        self.seen = set()  # places that have run
        self.never = set()  # those of them that changed what they read, or whose program did
        self._given = {}  # place to (its counter, version) of each tensor that it was given last

    def meet(self, model):
        """From now on the model's blocks are segments."""
        if model in self._met:
            return
        with self._meeting:
            # A sequence may be in several models, and in several places of one: its layers run once.
            runs = {}
            for number, block in enumerate(blocks_of(model)):
                name = type(model).__name__, number
                if isinstance(block, tuple):
                    sequence, begin, end = block
                    runs.setdefault(sequence, {}).setdefault(begin, (begin, end, name))
                else:
                    self._modules.setdefault(block, name)
            for sequence, by_begin in runs.items():
                self._runs.setdefault(sequence, (len(sequence), list(by_begin.values())))
            self._met.add(model)

    def _runs_of(self, sequence):
        length, runs = self._runs.get(sequence, (0, ()))
        if not runs or length == len(sequence):
            return runs
        # It was changed since.
        found = []
        _divide(sequence, found)
        kind, length = runs[0][2][0].partition(":")[0], len(sequence)
        own = [block[1:] for block in found if isinstance(block, tuple) and block[0] is sequence]
        runs = [(begin, end, (f"{kind}:{length}", number)) for number, (begin, end) in enumerate(own)]
        with self._meeting:
            self._runs[sequence] = length, runs
        return runs

    def keeps_nothing_of(self, place, tensors):
        """It was not recomputed: whoever changes its inputs now, as `x += block(x)` does, may."""
        self._given[place] = [(_counter_of(tensor), tensor._version) for tensor in tensors]

    def look_again(self):
        """Whether that happened, when a backward pass begins: optimisers change what they read, too."""
        given, self._given = self._given, {}
        self.never.update(place for place, tensors in given.items()
                          if any(counter._version != version for counter, version in tensors))

    def call(self, module, work, inputs, named):
        name = self._modules.get(module)
        if name is None:
            return work(*inputs, **named)
        return self._segment(name, (module,), work, inputs, named)

    def sequence(self, module, given, original):
        """The forward pass of a Sequential; `original` where it has no runs of layers."""
        runs = self._runs_of(module)
        if not runs:
            return original(module, given)
        parts, at = list(module), 0
        for begin, end, name in runs:
            for part in parts[at:begin]:
                given = part(given)
            given = self._segment(name, parts[begin:end], _chain(parts[begin:end]), (given,), {})
            at = end
        for part in parts[at:]:
            given = part(given)
        return given

    def _segment(self, name, modules, work, inputs, named):
        # What the program itself computes again in a backward pass is none of a step's.
        if not torch.is_grad_enabled() or recomputing() or in_backward():
            return work(*inputs, **named)
        for alone in map(self._busy.acquire, (False,)):  # a signal's handler may raise behind a call
            try:
                return (self._run(name, modules, work, inputs, named) if alone else work(*inputs, **named))
            finally:
                if alone:
                    self._busy.release()


def _counter_of(tensor):
    """What shares the counter of its versions, and holds none of its memory where that is possible."""
    counter = tensor.detach()
    if tensor.layout is torch.strided:  # others stay until they are looked at again
        counter.data = counter.new_empty(0)
    return counter


def _chain(parts):
    def work(given):
        for part in parts:
            given = part(given)
        return given

    return work


def place_of(name, modules, tensors):
    """What tells a segment from others, and from itself with other shapes."""
    return (
        name,
        tuple(type(module).__name__ for module in modules),
        tuple((tuple(tensor.shape), str(tensor.dtype), tensor.requires_grad) for tensor in tensors),
        modules[0].training,
    )


class Calls:
    """Calls of modules, as long as any Swap wants to see them: `active` gives this thread's Segments."""

    def __init__(self, active):
        self._active = active
        self._hooks = program_hooks.Watch()
        self._users = 0
        self._lock = threading.Lock()

    def watch(self):
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            self._call, self._forward = Module.__call__, Sequential.forward
            active, call, forward = self._active, self._call, self._forward
            depth = threading.local()

            def called(module, /, *inputs, **named):
                segments = active()
                if segments is None or traced():
                    return call(module, *inputs, **named)
                outer = getattr(depth, "inside", False)
                if not outer and module.training and torch.is_grad_enabled():
                    segments.meet(module)
                depth.inside = True
                try:
                    return segments.call(
                        module, lambda *args, **kwargs: call(module, *args, **kwargs), inputs, named
                    )
                finally:
                    depth.inside = outer

            @functools.wraps(forward)  # what compiles the source finds PyTorch's
            def passed(module, input):  # noqa: A002: as PyTorch calls it
                segments = active()
                if segments is None or traced():
                    return forward(module, input)
                return segments.sequence(module, input, forward)

            Module.__call__, Sequential.forward = called, passed
            self._hooks.begin()

    def unwatch(self):
        with self._lock:
            self._users -= 1
            if self._users == 0:
                Module.__call__, Sequential.forward = self._call, self._forward
                self._hooks.end()


_here = threading.local()


def _active():
    stack = getattr(_here, "stack", None)
    segments, depth = stack[-1] if stack else (None, 0)
    return segments if depth == program_hooks.depth() else None


_calls = Calls(_active)
os.register_at_fork(after_in_child=lambda: setattr(_calls, "_lock", threading.Lock()))


def enter(segments):
    """From now on this thread's calls of modules are theirs, until `leave`."""
    _calls.watch()
    _here.stack = [*getattr(_here, "stack", ()), (segments, program_hooks.depth())]


def leave():
    _here.stack = _here.stack[:-1]
    _calls.unwatch()
