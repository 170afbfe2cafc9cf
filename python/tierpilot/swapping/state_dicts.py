"""What stands in the place of the dict that an optimiser has for each parameter."""

import collections
import copy

import torch

from .endings import Untold
from .kept import Kept
from .saved import LEAST_BYTES


class State:
    """One tensor of it. Whoever has this has the tensor, wherever that is."""

    __slots__ = ("states", "stored")
    used = True

    def __init__(self, states, tensor, shown):
        self.states = states
        self.stored = Kept(states.keeper, tensor, shown)
        self.__class__ = states.state  # whose end is told, from here on

    def get(self):
        return self.states.get(self.stored)


class StateDict(dict):
    """A dict whose tensors may be away, and are back for whoever looks: all that reads values of a dict is told here.
    What goes around it, by functions of C that know dicts only, finds a State, which is no tensor.

    Who makes another one of its class, as libraries do that go through nested mappings, gets a dict."""

    __slots__ = ("states",)

    def __new__(cls, *values, **named):
        if named or len(values) < 2:
            return dict(*values, **named)
        return super().__new__(cls)

    def __init__(self, states, values):
        super().__init__(values)
        self.states = states

    def __del__(self):
        states = getattr(self, "states", None)
        if states is None:  # an interrupt came before it was made
            return
        try:
            dict.clear(self)
            states.see_to_ended()
        except BaseException as error:
            states.swap._ended.append(Untold(error))

    # For the optimiser's keeper

    def adopt(self, shown):
        """Takes tensors in that came since."""
        for key, value in dict.items(self):
            if is_large(value):
                dict.__setitem__(self, key, State(self.states, value, shown))

    def kept(self):
        return [value.stored for value in dict.values(self) if isinstance(value, State)]

    # For everybody

    def __getitem__(self, key):
        return _shown(dict.__getitem__(self, key))

    def __setitem__(self, key, value):
        there = dict.get(self, key)
        if isinstance(there, State) and value is not None and there.stored.tensor is value:
            return  # optimisers put back what they have just taken out
        del there
        dict.__setitem__(self, key, value)
        self.states.see_to_ended()

    def __delitem__(self, key):
        dict.__delitem__(self, key)
        self.states.see_to_ended()

    def clear(self):
        dict.clear(self)
        self.states.see_to_ended()

    def update(self, *values, **named):
        dict.update(self, *values, **named)
        self.states.see_to_ended()

    def __ior__(self, other):
        self.update(other)
        return self

    def __iter__(self):  # without it dict() and ** would not ask for values
        return dict.__iter__(self)

    def get(self, key, default=None):
        return _shown(dict.get(self, key, default))

    def setdefault(self, key, default=None):
        return _shown(dict.setdefault(self, key, default))

    def pop(self, key, *default):
        value = _shown(dict.pop(self, key, *default))
        self.states.see_to_ended()
        return value

    def popitem(self):
        key, state = dict.popitem(self)
        value = _shown(state)
        del state
        self.states.see_to_ended()
        return key, value

    def values(self):
        return {key: self[key] for key in self}.values()

    def items(self):
        return {key: self[key] for key in self}.items()

    def copy(self):
        return dict(self.items())

    __copy__ = copy

    def __deepcopy__(self, known):
        return copy.deepcopy(self.copy(), known)

    def __reduce_ex__(self, protocol):
        # Of what is no tensor, torch.load(weights_only=True) knows this, and no call of dict().
        return collections.OrderedDict, (), None, None, iter(self.items())

    def __or__(self, other):
        return self.copy() | other

    def __ror__(self, other):
        return other | self.copy()

    def __eq__(self, other):
        return self.copy() == other

    def __ne__(self, other):
        return self.copy() != other

    __hash__ = None

    def __repr__(self):
        return repr(self.copy())


def is_large(value):
    """Whether it is a tensor that may be worth its way."""
    return type(value) is torch.Tensor and value.numel() * value.element_size() >= LEAST_BYTES


def _shown(value):
    return value.get() if isinstance(value, State) else value


def _make_known_to_pytree():
    """It knows classes, not what is derived from them."""
    try:
        from torch.utils import _pytree
    except ImportError:  # an internal module
        return
    register = getattr(_pytree, "register_pytree_node", None) or getattr(_pytree, "_register_pytree_node", None)
    if register:
        register(StateDict, lambda state: ([*state.values()], [*state]), lambda values, keys: dict(zip(keys, values)))


_make_known_to_pytree()
