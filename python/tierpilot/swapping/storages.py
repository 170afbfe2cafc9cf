"""Storages of PyTorch tensors, by what its versions from 1.13 on have in common."""

import functools

import torch

from .endings import without_signals

# The tensor's storage, as bytes.
untyped = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage


# What tensors in no memory share; each keeps its own counter of versions.
_nothing = torch.empty(0)


def leave_memory(tensor):
    """It keeps its counter of versions alone."""
    tensor.data = _nothing


inference = torch.is_inference_mode_enabled


def as_usual(function):
    """Makes no inference tensors, which no graph may have and no optimiser may change."""

    @functools.wraps(function)
    def called(*arguments, **named):
        if not inference():
            return function(*arguments, **named)
        with torch.inference_mode(False):
            return function(*arguments, **named)

    return called


class Weak(int):
    """Whether a storage is still held by anybody else; its address stays its own meanwhile."""

    __slots__ = ()

    def __new__(cls, storage):
        return int.__new__(cls, storage._weak_ref())

    __del__ = without_signals(torch.UntypedStorage._free_weak_ref)

    def expired(self):
        return torch.UntypedStorage._expired(self)


def from_weak(weak):
    """The storage, which somebody holds."""
    return torch.UntypedStorage._new_with_weak_ptr(weak)


def allocated_here(storage):
    """Whether its memory is PyTorch's own, and no array's of somebody else."""
    if hasattr(storage, "resizable"):
        return storage.resizable()
    try:
        storage.resize_(-1)  # says whether it may before it finds that it cannot, which asks malloc for nothing
    except RuntimeError as error:
        return "not resizable" not in str(error)
    return False


class Layout:
    """How a tensor lies in its storage."""

    __slots__ = ("dtype", "offset", "size", "stride")

    def __init__(self, tensor):
        self.dtype = tensor.dtype
        self.offset = tensor.storage_offset()
        self.size = tensor.size()
        self.stride = tensor.stride()

    @as_usual
    def tensor(self, storage):
        empty = torch.empty(0, dtype=self.dtype, device=storage.device)
        return empty.set_(storage, self.offset, self.size, self.stride)
