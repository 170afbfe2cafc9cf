"""Which operator a tensor is saved for. Some fill what they save of their inputs (a random ReLU its slopes) after they have
saved it."""

import ctypes
import itertools
import threading

import torch


def _node_counter():
    """Counts the nodes of graphs by thread: an operator makes its own before it saves anything."""
    said = getattr(torch.autograd, "_get_sequence_nr", None)
    if said is not None:
        return said
    try:  # PyTorch 1.13 tells it to C++ only
        said = ctypes.PyDLL(torch._C.__file__)._ZN2at15sequence_number4peekEv
    except (OSError, AttributeError):
        return itertools.count(1).__next__  # each save may be another operator's
    said.restype = ctypes.c_uint64
    return said


nodes_so_far = _node_counter()


class Unfinished(threading.local):
    """The operator whose saves of this thread may be unfinished, by its node's number; none: there is none."""

    node = None
