"""What stands in the place of tensors that autograd saves, and which of them may leave."""

import torch

from .storages import Layout, Weak

# Smaller ones are many and hold little; what all of them hold is not worth a hook's time.
LEAST_BYTES = 64 << 10


def _modified(saved, now):
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: it is at version {now}; expected version {saved} instead"
    )


class Untouched:
    """A saved tensor that is not swapped; checked as autograd checks its own."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor):
        self.version = tensor._version
        # Detached: with its grad_fn it would hold what holds it.
        self.tensor = tensor.detach()

    def get(self):
        if self.tensor._version != self.version:
            raise _modified(self.version, self.tensor._version)
        return self.tensor


class Stored:
    """A saved storage: one for all tensors in it that were saved at one version."""

    __slots__ = (
        "key", "number", "size", "storage", "witness", "version", "weak", "handles", "unused", "spoiled"
    )

    def __init__(self, key, tensor, storage):
        self.key = key
        self.number = 0
        self.size = storage.nbytes()
        self.storage = storage
        self.witness = tensor.detach()  # shares its version counter
        self.version = tensor._version
        self.weak = Weak(storage)
        self.handles = 0
        self.unused = 0  # handles that no backward pass has asked for
        self.spoiled = None  # the version that it was changed to before its copy was complete

    def check(self):
        if self.witness is not None and self.witness._version != self.version:
            self.spoiled = self.witness._version
        if self.spoiled is not None:
            raise _modified(self.version, self.spoiled)

    def let_go(self):
        if self.witness is not None and self.witness._version != self.version:
            self.spoiled = self.witness._version
        self.storage = self.witness = None


class Handle:
    """What autograd keeps in the place of a tensor."""

    __slots__ = ("swap", "stored", "layout", "used")

    def __init__(self, swap, stored, tensor):
        self.swap, self.stored, self.layout = swap, stored, Layout(tensor)
        self.used = False
        stored.handles += 1
        stored.unused += 1

    def __del__(self):
        self.swap._dropped(self)

    def get(self):
        return self.swap._get(self)


def swappable(tensor):
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return False
    if type(tensor) is not torch.Tensor or tensor.is_quantized:
        return False
    if tensor.is_leaf and tensor.requires_grad:
        return False  # a parameter: the program has it anyway
    base = tensor._base
    return base is None or not (base.is_leaf and base.requires_grad)
