"""What stands in the place of tensors that autograd saves, and which of them may leave."""

import weakref

import torch

from .endings import Finite, quiet
from .engine import nodes_so_far, traced
from .fields import HandleFields, StoredFields, UntouchedFields, know
from .storages import Layout, Weak, inference, leave_memory, untyped

# Smaller ones are many and hold little; what all of them hold is not worth a hook's time.
LEAST_BYTES = 64 << 10
_Tensor, _strided = torch.Tensor, torch.strided
# Neither quantized nor complex: to ask for the type costs less than for both.
_REAL = frozenset((torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool))


def _modified(saved, now):
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: it is at version {now}; expected version {saved} instead"
    )


class Untouched(UntouchedFields):
    """A saved tensor that is not swapped; checked as autograd checks its own."""

    __slots__ = ()

    def __init__(self, tensor):
        self.version = tensor._version
        # Detached: with its grad_fn it would hold what holds it. A parameter has none, and may get other data.
        self.tensor = tensor if tensor.is_leaf and tensor.requires_grad else tensor.detach()

    def get(self):
        if self.tensor._version != self.version:
            raise _modified(self.version, self.tensor._version)
        return self.tensor


class Counter:
    """That of the versions of a tensor (`root`) and its views; others may have counters of their own in the same storage."""

    def __init__(self, root, tensor):
        self.root = weakref.ref(root)
        self.witness = tensor.detach()  # shares the counter
        self.version = tensor._version

    def check(self):
        if self.witness._version != self.version:
            raise _modified(self.version, self.witness._version)


class Stored(StoredFields):
    """A saved storage: one for all tensors in it that were saved with the same content. It is its first tensor's counter.

    `number` is 0 where it is not swapped, or no more; `stream` that in which its memory was taken anew; `unused` counts
    handles that no backward pass has used; `others` are counters. Of what has left `weak` tells whether the program holds
    it, and `layout` how the first tensor lay.
    """

    __slots__ = ()

    def __init__(self, key, root, tensor, storage, size):
        # Counter's, written out: a call of it takes a quarter of a save's objects.
        self.root = weakref.ref(root)
        self.witness = tensor.detach()
        self.version = tensor._version
        self.others = ()
        self.key = key
        self.size = size
        self.storage = storage

    check = Counter.check

    def counter_of(self, root):
        for counter in (self, *self.others):
            if counter.root() is root:
                return counter
        return None

    def let_go(self):
        if self.layout is None:
            self.weak = Weak(self.storage)
            self.layout = Layout(self.witness)
        for counter in (self, *self.others):
            leave_memory(counter.witness)
        self.storage = None

    def end(self, swap):
        if self.number and not swap._core.drop(self.number):
            swap._forget(self)

    def held(self):
        """The program holds it: that it left freed nothing."""
        return self.storage is None and not self.weak.expired()

    def at_its_address(self):
        """Nobody else's storage can have the address that its key names."""
        return self.weak is None or not self.weak.expired()

    def moved(self):
        """Its memory was replaced (shared, resized): what was copied since is somebody else's."""
        return self.handles > 0 and self.layout is None and self.storage.data_ptr() != self.address


class Dropped:
    """A number that a storage had, with its copy under way perhaps: ends as a handle and what it is of."""

    used = False
    key = None
    number = 0
    handles = unused = 1

    def __init__(self, storage):
        self.storage = storage
        self.stored = self

    def let_go(self):
        self.storage = None

    def held(self):
        return False

    end = Stored.end


class Handle(HandleFields, Finite):
    """What autograd keeps in the place of a tensor. `layout` and `counter` are none for the first one of a storage, and for
    those that lie in it alike."""

    __slots__ = ()
    used = False  # by a backward pass; then its class is `owner.used_handle`

    def __init__(self, owner, stored, layout=None, counter=None):
        self.stored = stored
        self.layout = layout
        self.counter = counter
        stored.handles += 1
        stored.unused += 1
        self.owner = owner

    def tensor(self):
        stored = self.stored
        if self.layout is None and stored.layout is None:
            return stored.witness.detach()  # that one may leave its memory, where another thread saves
        # Who changes it is counted as who changes the one that was saved.
        tensor = (self.counter or stored).witness.detach()
        tensor.data = (self.layout or stored.layout).tensor(stored.storage)
        return tensor


def used_handle(ended):
    """The class of handles that a backward pass has used: they end in it, where signals arrive most, and the next hook
    sees to them."""
    return quiet(Handle, ended, used=True)


def is_plain(tensor):
    """Whether its storage and layout tell all of it."""
    return (
        type(tensor) is _Tensor
        and tensor.layout is _strided
        and not (tensor.is_nested or tensor.is_neg())
        and (tensor.dtype in _REAL or not (tensor.is_quantized or tensor.is_conj()))
    )


def swappable(tensor, maker, base):
    """`maker` is its grad_fn, `base` what it is a view of."""
    if not is_plain(tensor) or maker is None and tensor.requires_grad:
        return False  # the latter is a parameter, which the program has anyway
    return base is None or not (base.requires_grad and base.is_leaf)


know(
    tensor=_Tensor,
    parameter=torch.nn.Parameter,
    strided=_strided,
    types=_REAL,
    storage_of=untyped.__name__,
    is_tracing=traced,
    is_inference=inference,
    nodes_so_far=nodes_so_far,
    stored=Stored,
    handle=Handle,
    untouched=Untouched,
    weak_reference=weakref.ref,
    least_bytes=LEAST_BYTES,
)
