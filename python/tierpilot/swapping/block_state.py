"""What the modules of a block hold, which its forward pass reads beside its inputs: seen before it, compared
after it, and theirs again while the block is computed again."""

import contextlib
import operator
from types import BuiltinMethodType, FunctionType, MethodType

import torch
from torch.nn import Module
from torch.nn.modules import module as hooks

from .places import Places
from .plain import MOST, VALUES, Unknown, changes_unseen, items_of, tensors_in

# Normalisations, whose running means are known to be all that they change: copies of these are computed with again.
# Not what is derived from them.
_COUNTING = frozenset(
    getattr(torch.nn, name)
    for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "InstanceNorm1d", "InstanceNorm2d",
                 "InstanceNorm3d")
)
_is = operator.is_
_OF_TORCH = frozenset(vars(Module()))  # hooks and the like


def _hooked(module):
    return module._forward_hooks or module._forward_pre_hooks


def _hooked_everywhere():
    """Whether the program has hooks on all modules; those of Places are ours."""
    before = hooks._global_forward_pre_hooks.values()
    return hooks._global_forward_hooks or any(type(getattr(hook, "__self__", None)) is not Places for hook in before)


def _same(some, others):
    """Whether two dicts or tuples hold the same objects, numbers and texts by value."""
    if isinstance(some, dict):
        if len(some) == len(others) and all(map(_is, some.values(), others.values())) and all(map(_is, some, others)):
            return True  # most often
        if some.keys() != others.keys():
            return False
        others = [others[name] for name in some]
        some = list(some.values())
    return len(some) == len(others) and (
        all(map(_is, some, others))
        or all(a is b or type(a) is type(b) and type(a) in VALUES and a == b for a, b in zip(some, others))
    )


def _put(held, wanted):
    if list(held) != list(wanted):
        held.clear()
    held.update(wanted)


class BlockState:
    """`why` it cannot be computed again, as far as that can be said before its forward pass, or none."""

    def __init__(self, modules, inputs):
        self.tensors = []  # that it is given
        self.why = None
        self._parts = []  # (module, its class, [(a dict of it, what was in it)])
        self._counting = []
        self._watched = []  # tensors with version and address
        self._compared = []  # by value too, when it is looked at closely
        self._copies = ()
        self._contents = []  # what attributes hold, with what was in it
        self._seen = set()
        try:
            if _hooked_everywhere():
                raise Unknown("hooks of the program run in it")
            tensors_in(inputs, self.tensors)
            self._given = [(tensor, tensor._version) for tensor in self.tensors]
            for module in modules:
                self._see_module(module)
        except Unknown as unknown:
            self.why = str(unknown)
        except RuntimeError:  # as of tensors of inference
            self.why = "it is given a tensor whose changes cannot be seen"
        del self._seen  # ids, of what may go

    def _see_module(self, module):
        if not self._first(module):
            return
        held = vars(module)
        if isinstance(module, torch.jit.ScriptModule) or "_orig_class" in held:  # the latter by functional_call
            raise Unknown("what a module of it holds cannot be seen")
        if _hooked(module):
            raise Unknown("hooks of the program run in it")
        parameters, buffers, modules = held["_parameters"], held["_buffers"], held["_modules"]
        dicts = [(held, held.copy()), (parameters, parameters.copy()), (modules, modules.copy())]
        if type(module) in _COUNTING and "forward" not in held:
            self._counting.append((buffers, buffers.copy()))
        else:
            dicts.append((buffers, buffers.copy()))
            for buffer in buffers.values():
                if buffer is not None:
                    self._see_tensor(buffer)
                    self._compared.append(buffer)
        self._parts.append((module, type(module), dicts))
        for name, value in held.items():
            if type(value) not in VALUES and name not in _OF_TORCH:
                self._see(value)
        for parameter in parameters.values():
            if parameter is not None:
                self._see_tensor(parameter)
                self._compared.append(parameter)
        for child in modules.values():
            if child is not None:
                self._see_module(child)

    def _first(self, value):
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        if len(self._seen) > MOST:
            raise Unknown("it holds too much to be watched")
        return True

    def _see(self, value):
        kind = type(value)
        if kind in VALUES or kind is FunctionType:
            return
        if kind is tuple:
            for item in value:
                if type(item) not in VALUES:
                    self._see(item)
        elif isinstance(value, torch.Tensor):
            self._see_tensor(value)
        elif isinstance(value, Module):
            self._see_module(value)
        elif kind in (MethodType, BuiltinMethodType):
            self._see(value.__self__)
        elif changes_unseen(value):
            raise Unknown(f"it holds a {kind.__name__}")
        elif self._first(value):
            items = items_of(value)
            if items is not None:
                self._contents.append((value, items))
                for item in items:
                    if type(item) not in VALUES:
                        self._see(item)

    def _see_tensor(self, tensor):
        if tensor.grad_fn is not None:  # kept in its own graph it would never go
            raise Unknown("it holds a tensor that was computed with gradients")
        try:
            self._watched.append((tensor, tensor._version, _address(tensor)))
        except (RuntimeError, ValueError):  # of inference; not initialised
            raise Unknown("it holds a tensor whose changes cannot be seen") from None

    def look_closely(self):
        """Operators that count running means change no version, nor does who writes by `.data`."""
        self._copies = [tensor.detach().clone() for tensor in self._compared]

    def unchanged(self):
        """After the forward pass: whether it left all that it reads as it was."""
        given, self._given, self.tensors = self._given, None, None
        copies, self._copies = self._copies, ()
        return (
            all(tensor._version == version for tensor, version in given)
            and all(map(torch.equal, copies, self._compared))
            and self.holds()
        )

    def holds(self):
        """Whether modules hold what they did."""
        return (
            self._tensor_changed() is None
            and self._contents_same()
            and all(type(module) is kind and all(_same(was, now) for now, was in dicts if was or now)
                    for module, kind, dicts in self._parts)
        )

    def _tensor_changed(self):
        for tensor, version, address in self._watched:
            if tensor._version != version or _address(tensor) != address:
                return tensor._version, version
        return None

    def _contents_same(self):
        try:
            return all(_same(was, items_of(value)) for value, was in self._contents)
        except Unknown:  # it has grown
            return False

    def check(self):
        """That what modules hold can be theirs again."""
        versions = self._tensor_changed()
        if versions is not None:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "a parameter, a buffer or an attribute is at version {}; expected version {} instead".format(*versions)
            )
        if not self._contents_same() or any(type(module) is not kind for module, kind, _ in self._parts):
            raise RuntimeError(
                "tierpilot.swap: what a segment reads was changed after its forward pass: change what modules hold "
                "after the backward pass, or train without recompute"
            )

    def keep_means(self):
        """As they are before the forward pass."""
        self._counting = [(buffers, _copies(now)) for buffers, now in self._counting]

    @contextlib.contextmanager
    def again(self):
        """Modules hold what they did; running means are copies, so that nothing is counted twice."""
        dicts = [pair for _, _, dicts in self._parts for pair in dicts if pair[0] or pair[1]]
        before = [(held, held.copy()) for held, _ in dicts]
        counted = [(buffers, buffers.copy()) for buffers, _ in self._counting]
        try:
            for held, wanted in dicts:
                if not _same(held, wanted):
                    _put(held, wanted)
            for buffers, means in self._counting:
                _put(buffers, _copies(means))
            yield
        finally:
            for held, wanted in before + counted:
                if not _same(held, wanted):
                    _put(held, wanted)


def _address(tensor):
    try:
        return tensor.data_ptr()
    except RuntimeError:  # sparse
        return 0


def _copies(buffers):
    return {name: None if buffer is None else buffer.detach().clone() for name, buffer in buffers.items()}
