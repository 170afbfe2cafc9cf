"""Which Python values can be compared with what they were: what a block of a model is given, and holds."""

import collections
import functools
import logging
import random
from enum import Enum
from types import FunctionType, ModuleType

import torch

# Never change, and are compared by value.
VALUES = frozenset(
    map(type, (None, True, 0, 0.0, 0j, "", b"", ..., range(0), torch.float32, torch.device("cpu"), torch.Size(),
               torch.strided, torch.contiguous_format))
)
MOST = 2000  # objects that a block may hold


class Unknown(Exception):
    """Why a block cannot be computed again."""


def tensors_in(value, found):
    """Adds the tensors among the inputs of a block, which may be nested in lists, tuples and dicts."""
    _add_tensors(value, found, set())


def _add_tensors(value, found, lists):
    kind = type(value)
    if kind in VALUES:
        return
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif kind is tuple or kind.__bases__ == (tuple,) and hasattr(kind, "_fields"):
        for item in value:
            _add_tensors(item, found, lists)
    elif kind in (list, dict, collections.OrderedDict) and id(value) not in lists:
        lists.add(id(value))  # given twice it would be two
        for item in value if kind is list else (*value, *value.values()):
            _add_tensors(item, found, lists)
    elif kind is slice:
        if any(type(part) not in VALUES for part in (value.start, value.stop, value.step)):
            raise Unknown("it is given a slice of tensors")
    elif not isinstance(value, Enum):
        raise Unknown(f"it is given a {kind.__name__}")


def changes_unseen(value):
    """Generators of random numbers, iterators, arrays: to use them changes them, or what is in them has no version."""
    kind = type(value)
    return (
        isinstance(value, (torch.Generator, random.Random))
        or kind.__module__.startswith("numpy.random")
        or kind.__module__ == "numpy" and kind.__name__ == "ndarray"
        or hasattr(kind, "__next__")
    )


def items_of(value):
    """What is in a container or an object, as far as Python tells; none of what has nothing or stands for itself."""
    if isinstance(value, (FunctionType, type, ModuleType, Enum, logging.Logger)):
        return None
    if isinstance(value, dict):
        items = (*value, *value.values())
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        items = tuple(value)
    elif isinstance(value, functools.partial):
        items = (value.func, *value.args, *value.keywords.values())
    else:
        held = getattr(value, "__dict__", None)
        return None if held is None else (*held, *held.values())
    if len(items) > MOST:
        raise Unknown("it holds too much to be watched")
    return items
