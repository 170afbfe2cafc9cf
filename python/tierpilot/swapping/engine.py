"""What PyTorch's engine knows of this thread: for which operator a tensor is saved, and whether a backward pass runs."""

import ctypes
import itertools
import threading

import torch


def _told_to_cpp(symbol, kind, otherwise):
    """By PyTorch 1.13, to Python only so: a function without arguments."""
    try:
        said = getattr(ctypes.PyDLL(torch._C.__file__), symbol)
    except (OSError, AttributeError):
        return otherwise
    said.restype = kind
    return said


# Counts the nodes of graphs: an operator makes its own before it saves anything.
nodes_so_far = getattr(torch.autograd, "_get_sequence_nr", None) or _told_to_cpp(
    "_ZN2at15sequence_number4peekEv", ctypes.c_uint64, itertools.count(1).__next__
)

if hasattr(torch._C, "_current_graph_task_id"):

    def in_backward():
        """Whether a backward pass runs."""
        return torch._C._current_graph_task_id() != -1

else:
    in_backward = _told_to_cpp(  # a pointer to what it has, or none
        "_ZN5torch8autograd32get_current_graph_task_exec_infoEv", ctypes.c_void_p, lambda: False
    )


traced = torch._C._is_tracing  # by torch.jit, which has to see a model as it is


def untraced(work, *given):
    """What `work` gives, which is none of the model's."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        return work(*given)
    finally:
        torch._C._set_tracing_state(state)


class Unfinished(threading.local):
    """The operator whose saves of this thread may be unfinished, by its node's number; none: there is none.
    Some operators fill what they save of their inputs (a random ReLU its slopes) after they have saved it."""

    node = None
