"""States of torch.optim's optimisers that are away between steps.

An optimiser whose class is known treats each parameter by itself: its step is taken for a few parameters at a time, so
that only their states have to be here together. Of any other one they come as it asks for them.
"""

import collections
import sys
import threading

import torch

from .core import STATES_NEWS
from .endings import quiet
from .kept import Keeper
from .saved import is_plain
from .state_dicts import State, StateDict, is_large

_BY_PARAMETER = frozenset(
    getattr(torch.optim, name)
    for name in "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop".split()
    if hasattr(torch.optim, name)
)
_PLAIN = dict, collections.OrderedDict  # the latter where it was pickled
_LEAST_PART_BYTES = 16 << 20
_KEPT = 2  # tensors of a parameter's size, by most of them
_HOOKS = "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"
_HOOKS_OF_ALL = "_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"
_thread = threading.local()  # `stepping`: it takes the step of an optimiser that is known


class States:
    """The states of optimisers, in the hands of a Swap."""

    def __init__(self, swap, everywhere):
        """`everywhere`: on a GPU, too, as somebody has asked for it."""
        self.keeper = Keeper(swap)
        self.swap = swap
        self.state = quiet(State, swap._ended)
        self._everywhere = everywhere

    # For optimisers

    def step(self, optimiser, step, arguments, named):
        """What `step(optimiser, ...)` returns, having done what that does."""
        if not self._everywhere and not self.swap.on_processor:
            return step(optimiser, *arguments, **named)
        try:
            if not self._any_leave():
                return step(optimiser, *arguments, **named)
            return self._step(optimiser, step, arguments, named)
        finally:
            self.swap.begin()

    def _step(self, optimiser, step, arguments, named):
        as_usual = len(arguments) + len(named) <= 1 and set(named) <= {"closure"}
        known = type(optimiser) in _BY_PARAMETER and _of_pytorch(step)
        if not known or not as_usual or _observed(optimiser):
            return self._step_whole(optimiser, step, arguments, named)
        closure, loss = named.get("closure", arguments[0] if arguments else None), None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if _divisible(optimiser):
            self._step_parts(optimiser, step)
        else:
            self._step_whole(optimiser, step, (), {})
        return loss

    def _step_whole(self, optimiser, step, arguments, named):
        try:
            return step(optimiser, *arguments, **named)
        finally:
            _leave(self._dicts(optimiser, list(optimiser.state), shown=True))

    def _step_parts(self, optimiser, step):
        parts = list(_parts(optimiser, max(_LEAST_PART_BYTES, self.swap._open().budget_bytes // 32)))
        for part, following in zip([[], *parts], [*parts, []]):
            # The next ones come while these are computed, and those before leave.
            self._ask(self._dicts(optimiser, _parameters(following), shown=True), _size(following))
            if part:
                self._step_part(optimiser, step, part)

    def _step_part(self, optimiser, step, part):
        with self.swap._lock:
            self.swap._make_room(_size(part))
        twin = object.__new__(type(optimiser))
        twin.__dict__.update(optimiser.__dict__)
        twin.param_groups = [{**group, "params": parameters} for group, parameters in part]
        _thread.stepping = True
        try:
            step(twin)
            shown = False
        except BaseException:
            shown = True  # its frames live on in the error
            raise
        finally:
            _thread.stepping = False
            _leave(self._dicts(optimiser, _parameters(part), shown))

    # For state dicts

    def get(self, kept):
        if self.swap._forked:
            if kept.tensor is None:
                raise RuntimeError("tierpilot.swap: this process was forked: states of optimisers that were away "
                                   "are its parent's")
            return kept.tensor
        with self.swap._lock:
            kept.shown = kept.shown or not getattr(_thread, "stepping", False)
            return self.keeper.get(kept)

    def see_to_ended(self):
        """Whose dicts have just been changed."""
        if self.swap._ended:
            self.swap._see_to_ended()

    def leave(self, state):
        with self.swap._lock:
            if not self.swap._forked:
                self.swap._open()
                for kept in state.kept():
                    self.keeper.leave(kept)
                self.swap._reap()

    # Within

    def _any_leave(self):
        return not self.swap.opened or self.swap._news.value & STATES_NEWS != 0

    def _ask(self, dicts, size):
        """Lets them begin to come back, where there is room for all of them."""
        with self.swap._lock:
            if not self.swap.opened or not self.swap._core.room(size, False):
                return
            try:
                for kept in (kept for state in dicts if state.states is self for kept in state.kept()):
                    self.keeper.ask(kept)
            except RuntimeError:  # no memory for it now: it comes when it is asked for
                pass

    def _dicts(self, optimiser, parameters, shown):
        """The states of these parameters, with what came since; `shown`: others than a known optimiser may have that."""
        dicts = []
        for parameter in parameters:
            state = optimiser.state.get(parameter)
            if type(state) in _PLAIN and any(map(is_large, state.values())):
                state = optimiser.state[parameter] = StateDict(self, state)
            if type(state) is StateDict:
                state.adopt(shown)
                dicts.append(state)
        return dicts


def _leave(dicts):
    """Each in the hands of who has taken it in: there may have been another Swap before."""
    for state in dicts:
        state.states.leave(state)


def _parameters(part):
    return [parameter for _, parameters in part for parameter in parameters]


def _size(part):
    """Bytes of the states of these parameters, and as much again for what computing takes."""
    return sum(2 * _KEPT * p.numel() * p.element_size() for p in _parameters(part))


def _parts(optimiser, most_bytes):
    """Lists of (group, parameters), each with states of about `most_bytes` at most."""
    part, size = [], 0
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            more = _KEPT * parameter.numel() * parameter.element_size()
            if part and size + more > most_bytes:
                yield part
                part, size = [], 0
            size += more
            if not part or part[-1][0] is not group:
                part.append((group, []))
            part[-1][1].append(parameter)
    if part:
        yield part


def _divisible(optimiser):
    """Whether a part of a step cannot fail where the whole had failed before it changed anything."""
    return not any(group.get("differentiable") for group in optimiser.param_groups) and all(
        parameter.grad is None or is_plain(parameter.grad)
        for group in optimiser.param_groups
        for parameter in group["params"]
    )


def _of_pytorch(step):
    """Whether it, and all that it wraps, is PyTorch's: what a program has put there parts would repeat."""
    while step is not None:
        if not getattr(step, "__globals__", {}).get("__name__", "").startswith("torch."):
            return False
        step = getattr(step, "__wrapped__", None)
    return True


def _observed(optimiser):
    """Whether somebody hears of its steps, by hooks that later versions of PyTorch have."""
    return any(getattr(optimiser, name, None) for name in _HOOKS) or any(
        getattr(sys.modules[torch.optim.Optimizer.__module__], name, None) for name in _HOOKS_OF_ALL
    )
