"""Where in its program a tensor is: the layer that runs, the operator that made it, its shape."""

import hashlib

import torch
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.module import register_module_forward_pre_hook


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

    def of(self, tensor):
        """(place, kind, whether it is a convolution's input); the same in every process."""
        maker = tensor.grad_fn
        made_by = "" if maker is None else maker.name()
        key = (self._layer, made_by, tensor.shape, tensor.dtype)
        found = self._known.get(key)
        if found is None:
            words = (self._layer, made_by, tuple(tensor.shape), str(tensor.dtype))
            found = number_of(words, 8), number_of(words[:2], 4)
            self._known[key] = found
        return *found, self._convolved != 0 and tensor.data_ptr() == self._convolved
