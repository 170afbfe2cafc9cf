"""A segment of a forward pass that keeps its inputs, and computes again in the backward pass what it
would have saved: checkpointing (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016) by
saved-tensor hooks."""

import contextlib
import threading
import weakref

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_flatten, tree_unflatten

from .randomness import random_states, same_states, set_random_states

_here = threading.local()


def recomputing():
    """Whether this thread computes a segment again."""
    return getattr(_here, "depth", 0) > 0


def tensors_of(inputs):
    return [leaf for leaf in tree_flatten(inputs)[0] if isinstance(leaf, torch.Tensor)]


def _modules_of(modules):
    return [part for module in modules for part in module.modules()]


def _counts_means(module):
    """Normalisations: what they do to running means does not change what they give in training."""
    return isinstance(module, torch.nn.modules.batchnorm._NormBase) and module.training


def _autocast():
    """(kind of device, whether it is on, type) of each kind."""
    if hasattr(torch, "get_autocast_dtype"):  # later versions warn of what earlier ones have
        return [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")]
    return [
        ("cpu", torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()),
        ("cuda", torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()),
    ]


class Unchanged:
    """Whether computing a segment again could give something else: by what its forward pass changes."""

    def __init__(self, modules, tensors):
        parts = _modules_of(modules)
        buffers = [b for part in parts if not _counts_means(part) for b in part._buffers.values() if b is not None]
        watched = tensors + buffers + [p for module in modules for p in module.parameters()]
        self._versions = [(tensor, tensor._version) for tensor in watched]

    def holds(self):
        return all(tensor._version == version for tensor, version in self._versions)


class _Own:
    """Buffers that are copies meanwhile, so that nothing is counted twice, modes as they were."""

    def __init__(self, modules, modes):
        self._parts = list(zip(_modules_of(modules), modes))

    def __enter__(self):
        self._before = []
        for part, mode in self._parts:
            self._before.append((part, part.training, dict(part._buffers)))
            part.training = mode
            for name, buffer in part._buffers.items():
                if buffer is not None and _counts_means(part):
                    part._buffers[name] = buffer.clone()

    def __exit__(self, *error):
        for part, mode, buffers in self._before:
            part.training = mode
            part._buffers.update(buffers)


class _Saved:
    """What autograd keeps in the place of a tensor that the segment would have saved."""

    __slots__ = ("segment", "at", "__weakref__")

    def __init__(self, segment, at):
        self.segment, self.at = segment, at


class Recomputed:
    """One run of a segment. `keep` packs an input into what has a `get`."""

    def __init__(self, run, modules, inputs, keep, untouched):
        self._run, self._modules = run, modules
        self._untouched = untouched
        leaves, self._shape = tree_flatten(inputs)
        self._inputs = [
            (keep(leaf), leaf.requires_grad) if isinstance(leaf, torch.Tensor) else (None, leaf) for leaf in leaves
        ]
        self._modes = [part.training for part in _modules_of(modules)]
        self._weights = [(p, p._version) for module in modules for p in module.parameters()]
        self._autocast = _autocast()
        self._cached = torch.is_autocast_cache_enabled()
        self._random = random_states()
        self._saved = []  # weak, by order, with shape and type
        self._again = {}
        self._lock = threading.RLock()

    def forward(self, *inputs, **named):
        with saved_tensors_hooks(self._pack, _unpack):
            made = self._run(*inputs, **named)
        if same_states(self._random, random_states()):
            self._random = None  # nothing random: another backward pass may be
        return made

    def _pack(self, tensor):
        saved = _Saved(self, len(self._saved))
        self._saved.append((weakref.ref(saved), tensor.shape, tensor.dtype))
        return saved

    def get(self, at):
        with self._lock:
            if at not in self._again:
                self._compute()
            # Once: a graph that is gone through again is computed again.
            return self._again.pop(at).get()

    def _compute(self):
        for weight, version in self._weights:
            if weight._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace "
                    f"operation: a parameter is at version {weight._version}; expected version {version} instead"
                )
        leaves = [
            given if kept is None else kept.get().detach().requires_grad_(given) for kept, given in self._inputs
        ]
        inputs, named = tree_unflatten(leaves, self._shape)
        random = random_states()
        count = 0

        def pack(tensor):
            nonlocal count
            if count >= len(self._saved):
                raise _differs()
            saved, *like = self._saved[count]
            if like != [tensor.shape, tensor.dtype]:
                raise _differs()
            if saved() is not None:
                self._again[count] = self._untouched(tensor)
            count += 1

        def unpack(_):
            raise RuntimeError("tierpilot.swap: a segment may not run a backward pass of its own")

        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            if self._random is not None:
                set_random_states(self._random)
            with _Own(self._modules, self._modes), torch.enable_grad(), saved_tensors_hooks(pack, unpack):
                with contextlib.ExitStack() as modes:
                    for (kind, on, dtype), (_, now, _) in zip(self._autocast, _autocast()):
                        if on or now:  # that of a GPU warns where there is none
                            modes.enter_context(torch.autocast(kind, enabled=on, dtype=dtype, cache_enabled=self._cached))
                    self._run(*inputs, **named)
            if count != len(self._saved):
                raise _differs()
        except BaseException:
            self._again.clear()
            raise
        finally:
            _here.depth -= 1
            set_random_states(random)


def _differs():
    return RuntimeError(
        "tierpilot.swap: a segment saved other tensors when it was computed again: what it does depends on more "
        "than its inputs; train without recompute"
    )


def _unpack(saved):
    return saved.segment.get(saved.at)
