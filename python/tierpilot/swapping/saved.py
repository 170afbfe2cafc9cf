"""What stands in the place of tensors that autograd saves, and which of them may leave."""

import torch

from .storages import Layout, Weak

# Smaller ones are many and hold little; what all of them hold is not worth a hook's time.
LEAST_BYTES = 64 << 10
_Tensor, _strided = torch.Tensor, torch.strided


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
        "key", "number", "size", "storage", "witness", "version", "weak", "layout", "handles", "unused", "spoiled"
    )

    def __init__(self, key, tensor, storage, size):
        self.key = key
        self.number = 0
        self.size = size
        self.storage = storage
        self.witness = tensor.detach()  # shares its version counter
        self.version = tensor._version
        # Of what has left, as most never does: whether the program holds it, and how the first tensor lay.
        self.weak = self.layout = None
        self.handles = 0
        self.unused = 0  # handles that no backward pass has asked for
        self.spoiled = None  # the version that it was changed to before its copy was complete

    def check(self):
        if self.witness is not None and self.witness._version != self.version:
            self.spoiled = self.witness._version
        if self.spoiled is not None:
            raise _modified(self.version, self.spoiled)

    def let_go(self):
        if self.witness is not None:
            if self.witness._version != self.version:
                self.spoiled = self.witness._version
            self.layout = Layout(self.witness)
            self.weak = Weak(self.storage)
        self.storage = self.witness = None

    def held(self):
        """The program holds it: that it left freed nothing."""
        return self.storage is None and not self.weak.expired()

    def at_its_address(self):
        """Nobody else's storage can have the address that its key names."""
        return self.weak is None or not self.weak.expired()


class Handle:
    """What autograd keeps in the place of a tensor. `layout` is none for the first one of a storage."""

    __slots__ = ("swap", "stored", "layout", "used")

    def __init__(self, swap, stored, layout=None):
        self.swap, self.stored, self.layout = swap, stored, layout
        self.used = False
        stored.handles += 1
        stored.unused += 1

    def __del__(self):
        self.swap._dropped(self)

    def get(self):
        return self.swap._get(self)

    def tensor(self):
        stored = self.stored
        if self.layout is None and stored.witness is not None:
            return stored.witness
        return (self.layout or stored.layout).tensor(stored.storage)


def is_plain(tensor):
    """Whether its storage and layout tell all of it."""
    # Asked for each saved tensor: the cheap questions first.
    if type(tensor) is not _Tensor or not tensor.is_cpu or tensor.layout is not _strided or tensor.is_quantized:
        return False
    return not (tensor.is_conj() or tensor.is_neg())  # which a storage does not say of its values


def swappable(tensor):
    if not is_plain(tensor):
        return False
    if tensor.requires_grad and tensor.is_leaf:
        return False  # a parameter: the program has it anyway
    base = tensor._base
    return base is None or not (base.requires_grad and base.is_leaf)
