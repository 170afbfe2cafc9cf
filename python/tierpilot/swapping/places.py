"""Where in its program a tensor is: the layer that runs, the operator that made it, its shape."""

import hashlib

import torch
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.module import register_module_forward_pre_hook

from .core import CONVOLUTION_INPUT


def number_of(words, size):
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=size).digest(), "little")


class Places:
    """Knows the layer by a hook on all modules, from `watch` to `unwatch`."""

    def __init__(self):
        self._layer = ""
        self._convolved = 0
        self._known = {}
        self._hook = None

    def watch(self):
        if self._hook is None:
            self._hook = register_module_forward_pre_hook(self._entered)

    def unwatch(self):
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
            self._layer = ""

    def _entered(self, module, inputs):
        self._layer = type(module).__name__
        first = inputs[0] if inputs and isinstance(module, _ConvNd) else None
        self._convolved = first.data_ptr() if isinstance(first, torch.Tensor) else 0

    def of(self, tensor, maker):
        """(place, kind, flags) of a tensor with that grad_fn; the same in every process."""
        # Its type stands for its name, which takes longer to ask for.
        found = self._known.get((self._layer, type(maker), tensor.shape, tensor.dtype))
        if found is None:
            found = self._numbers(maker, tensor)
        if self._convolved != 0 and tensor.data_ptr() == self._convolved:
            return found[0], found[1], CONVOLUTION_INPUT
        return found

    def _numbers(self, maker, tensor):
        made_by = "" if maker is None else maker.name()
        words = (self._layer, made_by, tuple(tensor.shape), str(tensor.dtype))
        found = number_of(words, 8), number_of(words[:2], 4), 0
        if type(maker).__name__ != "CppFunction":  # which operators without a type of their own share
            self._known[self._layer, type(maker), tensor.shape, tensor.dtype] = found
        return found
