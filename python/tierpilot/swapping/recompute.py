"""A segment of a forward pass that keeps its inputs, and computes again in the backward pass what it
would have saved: checkpointing (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016) by
saved-tensor hooks."""

import contextlib
import threading
import weakref

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_flatten, tree_unflatten

from ..randomness import drawn_from, random_states, set_random_states
from .block_state import BlockState
from .storages import as_usual

_here = threading.local()


def recomputing():
    """Whether this thread computes a segment again."""
    return getattr(_here, "depth", 0) > 0


def _autocast():
    """(kind of device, whether it is on, type) of each kind."""
    if hasattr(torch, "get_autocast_dtype"):  # later versions warn of what earlier ones have
        return [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")]
    return [
        ("cpu", torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()),
        ("cuda", torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()),
    ]


class _Saved:
    """What autograd keeps in the place of a tensor that the segment would have saved."""

    __slots__ = ("segment", "at", "__weakref__")

    def __init__(self, segment, at):
        self.segment, self.at = segment, at


class Recomputed:
    """One run of a segment. `keep` packs an input into what has a `get`."""

    def __init__(self, run, modules, inputs, keep, untouched, state=None):
        self._run, self._untouched = run, untouched
        self._state = state or BlockState(modules, inputs)
        self._state.keep_means()
        leaves, self._shape = tree_flatten(inputs)
        # The same tensor twice is the same again: some layers ask.
        given = {
            id(leaf): (keep(leaf), leaf.requires_grad, leaf.is_leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)
        }
        self._order = [(id(leaf), None) if id(leaf) in given else (None, leaf) for leaf in leaves]
        self._inputs = given
        self._makers = {id(leaf.grad_fn): leaf.grad_fn for leaf in leaves if isinstance(leaf, torch.Tensor)}
        self._autocast = _autocast()
        self._cached = torch.is_autocast_cache_enabled()
        self._random = random_states()
        self._saved = []  # weak, by order, with what tells them from others
        self._again = {}
        self.possible = True  # what it read is as it was
        self._lock = threading.RLock()

    def forward(self, *inputs, **named):
        try:
            with saved_tensors_hooks(self._pack, _unpack):
                made = self._run(*inputs, **named)
        finally:
            self._makers = None
        # Often none: another thread that draws meanwhile is not set back.
        self._random = drawn_from(self._random, random_states())
        self.possible = self._state.unchanged()
        return made

    def _pack(self, tensor):
        saved = _Saved(self, len(self._saved))
        maker = tensor.grad_fn
        # Inputs are made elsewhere.
        kind = None if self._makers is None or id(maker) in self._makers else type(maker)
        self._saved.append((weakref.ref(saved), kind, *_look(tensor)))
        return saved

    @as_usual
    def get(self, at):
        with self._lock:
            if at not in self._again:
                self._compute()
            # Once: a graph that is gone through again is computed again.
            return self._again.pop(at).get()

    def _compute(self):
        if not self.possible:
            raise RuntimeError(
                "tierpilot.swap: the forward pass of a segment changed its inputs or what its modules hold, for the first "
                "time: to compute it again would give something else; train without recompute"
            )
        self._state.check()
        again = {number: _as_it_was(*given) for number, given in self._inputs.items()}
        leaves = [given if number is None else again[number] for number, given in self._order]
        inputs, named = tree_unflatten(leaves, self._shape)
        random = random_states() if self._random else {}
        count = 0

        def pack(tensor):
            nonlocal count
            if count >= len(self._saved):
                raise _differs()
            saved, maker, *look = self._saved[count]
            if look != _look(tensor) or maker is not None and maker is not type(tensor.grad_fn):
                raise _differs()
            if saved() is not None:
                self._again[count] = self._untouched(tensor)
            count += 1

        def unpack(_):
            raise RuntimeError("tierpilot.swap: a segment may not run a backward pass of its own")

        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            set_random_states(self._random)
            with self._state.again(), torch.enable_grad(), saved_tensors_hooks(pack, unpack):
                with contextlib.ExitStack() as modes:
                    for (kind, on, dtype), (_, now, _) in zip(self._autocast, _autocast()):
                        if on or now:  # that of a GPU warns where there is none
                            modes.enter_context(torch.autocast(kind, enabled=on, dtype=dtype, cache_enabled=self._cached))
                    self._run(*inputs, **named)
                if count != len(self._saved) or not self._state.holds():
                    raise _differs()
        except BaseException:
            self._again.clear()
            raise
        finally:
            _here.depth -= 1
            set_random_states({generator: random[generator] for generator in self._random})


def _as_it_was(kept, wanted, leaf):
    tensor = kept.get().detach().requires_grad_(wanted)
    if leaf:
        return tensor
    with torch.enable_grad():
        return tensor.view_as(tensor)  # of leaves autocast keeps its casts, of others it does not


def _look(tensor):
    strided = tensor.layout is torch.strided
    return [tensor.shape, tensor.dtype, tensor.stride() if strided else tensor.layout]


def _differs():
    return RuntimeError(
        "tierpilot.swap: a segment saved other tensors when it was computed again: what it does depends on more "
        "than its inputs; train without recompute"
    )


def _unpack(saved):
    return saved.segment.get(saved.at)
