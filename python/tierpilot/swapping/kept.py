"""Tensors that a program keeps from one step to the next, and that may be away in between."""

import sys

from . import core
from .saved import LEAST_BYTES, is_plain
from .storages import Layout, Weak, allocated_here, as_usual, from_weak, untyped

_HOLDERS = 3  # of a tensor that nobody else has: a Kept, a local variable, and who counts


def may_leave(tensor):
    """A tensor of its own, whole in its storage, that no graph knows."""
    if not is_plain(tensor) or tensor.requires_grad or tensor.grad_fn is not None or tensor._base is not None:
        return False
    size = tensor.numel() * tensor.element_size()
    storage = untyped(tensor)
    return size >= LEAST_BYTES and size == storage.nbytes() and not storage.is_shared()


class Kept:
    """A tensor that is here, or away: then `layout` is how it lay. With a number the core has it."""

    __slots__ = ("keeper", "key", "number", "size", "tensor", "storage", "stream", "layout", "handles", "shown")

    def __init__(self, keeper, tensor, shown):
        self.keeper = keeper
        self.key = self.storage = self.layout = None
        self.number = self.stream = 0
        self.size = tensor.numel() * tensor.element_size()
        self.tensor = tensor
        self.handles = 1
        self.shown = shown  # others than an optimiser that is known have had it

    def let_go(self):
        """Its copy is complete."""
        if self.tensor is not None and not self._free():
            self.keeper.drop(self)

    def held(self):
        return False

    def came_back(self):
        if self.tensor is None:
            self.tensor = self.layout.tensor(self.storage)
        self.storage = self.layout = None

    @as_usual
    def make_private(self):
        """Whether nobody else has its memory. Who was shown it may have kept a view of it, or its address: only a copy
        is known to be nobody's, and counts only where the memory that it was made of is free then."""
        if not self.shown:
            return True
        if not allocated_here(untyped(self.tensor)):
            return False
        try:
            copy = self.tensor.clone()
        except RuntimeError:  # no memory for it
            return False
        if copy.stride() != self.tensor.stride() or not self._free(copy):
            return False
        self.shown = False
        return True

    def _free(self, instead=None):
        """Whether its memory was, with `instead` in its place; else a view holds it, and it is here as it was."""
        layout, weak = Layout(self.tensor), Weak(untyped(self.tensor))
        self.layout, self.tensor = layout, instead
        if weak.expired():
            return True
        self.tensor = layout.tensor(from_weak(weak))
        self.shown = True
        return False

    def end(self, swap):
        self.keeper.drop(self)


class Copied:
    """Memory that is being copied for nobody any more: it has to stay until the core lets go of it."""

    __slots__ = ("key", "number", "tensor", "handles")

    def __init__(self, number, tensor):
        self.key = None
        self.number = number
        self.tensor = tensor
        self.handles = 0

    def let_go(self):
        self.tensor = None

    def held(self):
        return False


class Keeper:
    """Gives tensors to the core of a Swap and has them back. For who holds the Swap's lock."""

    def __init__(self, swap):
        self._swap = swap

    def leave(self, kept):
        """It may leave from now on, if nobody else has it."""
        if kept.number:
            return
        tensor = kept.tensor
        if sys.getrefcount(tensor) > _HOLDERS or not self._swap._device.takes(tensor) or not may_leave(tensor):
            return
        del tensor
        if not kept.make_private():
            return
        self._swap._settle()  # an end that was cut off would end what has its number by then
        data = kept.tensor.data_ptr()
        stream = self._swap._current_stream()
        for number in self._swap._core.saving(0, 0, core.STATE, data, kept.size, stream):
            if number:
                kept.number = number
                self._swap._by_number[number] = kept
            break

    def ask(self, kept):
        """Lets it begin to come back, if it is away."""
        if kept.number and kept.tensor is None and kept.storage is None:
            self._swap._fetch(kept)

    def get(self, kept):
        """The tensor, for whoever asks, until it may leave again."""
        if kept.number:
            where = self._swap._core.use(kept.number)
            if where == core.AWAY:
                self._swap._fetch(kept)
            if where in (core.AWAY, core.COMING):
                where = self._swap._core.wait(kept.number)
            if where != core.HERE:
                raise RuntimeError("tierpilot.swap: a state of an optimiser cannot be read back from its memory tier")
            kept.came_back()
            self.drop(kept)
        return kept.tensor

    def drop(self, kept):
        """The core has it no more."""
        number = kept.number
        if number == 0:
            return
        copied = Copied(number, kept.tensor)
        for later in self._swap._core.dropping(number):
            if kept.number == 0:
                break  # it was collected meanwhile
            kept.number = 0
            if later:
                self._swap._by_number[number] = copied
            else:
                del self._swap._by_number[number]
