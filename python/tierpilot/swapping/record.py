"""Records one training step of a PyTorch program that knows nothing of it, as an operator log of Dynamic Tensor
Rematerialization: what each operator read and made, its bytes and its time. tiertool swap record uses it.

Seen from below autograd: forward and backward pass alike. A storage is one tensor of the log; views are left out, as they make
nothing. A step begins with the first forward pass after a backward pass and ends with the next backward pass.
"""

import inspect
import json
import os
import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from .storages import Weak, untyped


def _storages(tree):
    """Of the tensors in it that have one, in order."""
    found = []
    for leaf in tree_flatten(tree)[0]:
        if isinstance(leaf, torch.Tensor):
            try:
                found.append(untyped(leaf))
            except (RuntimeError, NotImplementedError):  # sparse, or without memory
                continue
    return found


def _written(func, args, kwargs):
    """Storages that the operator changes in place, by its schema."""
    changed = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        changed += _storages(value)
    return changed


class Log:
    """Lines of the log, in order. Names are given once and never again."""

    def __init__(self):
        self.lines = []
        self._names = 0
        self.line(INSTRUCTION="ANNOTATE", ANNOTATION="START")

    def line(self, **entries):
        self.lines.append(json.dumps(entries))

    def name(self):
        self._names += 1
        return f"x{self._names}"

    def constant(self, size):
        name = self.name()
        self.line(INSTRUCTION="CONSTANT", NAME=name)
        self.line(INSTRUCTION="MEMORY", NAME=name, MEMORY=str(size))
        return name

    def call(self, operator, arguments, sizes, took_ns):
        names = [self.name() for _ in sizes]
        self.line(INSTRUCTION="CALL", NAME=operator, ARGS=arguments, RESULT=names, TIME=str(took_ns))
        for name, size in zip(names, sizes):
            self.line(INSTRUCTION="MEMORY", NAME=name, MEMORY=str(size))
            self.line(INSTRUCTION="ALIAS", NAME=name, ALIAS="-1")
        return names

    def mutate(self, operator, arguments, positions, took_ns):
        self.line(INSTRUCTION="MUTATE", NAME=operator, ARGS=arguments, MUTATE=positions, TIME=str(took_ns))

    def release(self, name):
        self.line(INSTRUCTION="RELEASE", NAME=name)

    def backward(self):
        self.line(INSTRUCTION="ANNOTATE", ANNOTATION="BACKWARD")

    def write(self, path):
        """Whole, or not at all."""
        unfinished = f"{path}.{os.getpid()}"
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines) + "\n")
        os.replace(unfinished, path)


class _Operators(TorchDispatchMode):
    """Sees every operator of a step."""

    def __init__(self):
        super().__init__()
        self.log = Log()
        self._live = {}  # by address of the storage: its name, and whether it still lives

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self._release()
        read = _storages((args, kwargs))
        on_device = any(storage.device.type == "cuda" for storage in read)
        if on_device:
            torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        result = func(*args, **kwargs)
        if on_device:
            torch.cuda.synchronize()
        self._note(func, read, _written(func, args, kwargs), _storages(result), time.perf_counter_ns() - begin)
        return result

    def _note(self, func, read, written, results, took_ns):
        arguments = list(dict.fromkeys(self._name(storage) for storage in read))
        made = {storage._cdata: storage for storage in results if storage._cdata not in self._live}
        if made:
            names = self.log.call(str(func), arguments, [storage.nbytes() for storage in made.values()], took_ns)
            for name, storage in zip(names, made.values()):
                self._live[storage._cdata] = (name, Weak(storage))
            took_ns = 0
        changed = dict.fromkeys(self._name(storage) for storage in written if storage._cdata not in made)
        if changed:
            self.log.mutate(str(func), arguments, [arguments.index(name) for name in changed], took_ns)

    def _name(self, storage):
        known = self._live.get(storage._cdata)
        if known is None:
            known = (self.log.constant(storage.nbytes()), Weak(storage))
            self._live[storage._cdata] = known
        return known[0]

    def _release(self):
        for address in [address for address, (_, weak) in self._live.items() if weak.expired()]:
            self.log.release(self._live.pop(address)[0])

    def end(self):
        self._release()


class Recorder:
    """Waits for step number `step`, counted from 1, and writes its log to `path`."""

    def __init__(self, path, step):
        self._path = path
        self._left = step
        self._operators = None
        self._zeroed = []  # parameters whose gradients the program has set to zero
        self._depth = 0  # recomputing within a backward pass may run one of its own

    def watch(self):
        torch.nn.modules.module.register_module_forward_pre_hook(lambda module, _: self._forward())
        backward, zero_grad = torch.autograd.backward, torch.optim.Optimizer.zero_grad
        usual = inspect.signature(zero_grad).parameters["set_to_none"].default

        def watched_backward(*arguments, **options):
            if self._operators and self._depth == 0:
                self._operators.log.backward()
            self._depth += 1
            try:
                result = backward(*arguments, **options)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self._after_backward()
            return result

        def watched_zero_grad(optimizer, *arguments, **options):
            # Gradients that stay would be changed in place, which the log can only tell as copies.
            if self._left == 1:
                if not options.get("set_to_none", arguments[0] if arguments else usual):
                    parameters = (p for group in optimizer.param_groups for p in group["params"])
                    self._zeroed += [p for p in parameters if p.grad is not None]
                arguments, options = (), {"set_to_none": True}
            return zero_grad(optimizer, *arguments, **options)

        torch.autograd.backward = watched_backward
        torch.optim.Optimizer.zero_grad = watched_zero_grad

    def _forward(self):
        if self._left == 1 and self._operators is None:
            self._operators = _Operators()
            self._operators.__enter__()

    def _after_backward(self):
        if self._left == 0:
            return
        self._left -= 1
        if self._left > 0 or self._operators is None:
            return
        self._operators.__exit__(None, None, None)
        self._operators.end()
        self._put_zeros_back()
        try:
            self._operators.log.write(self._path)
        except OSError as error:
            print(f"tiertool swap record: {error}", file=sys.stderr)
        self._operators = None

    def _put_zeros_back(self):
        # An optimiser changes what has a gradient of zeros, too, by momentum and weight decay.
        for parameter in self._zeroed:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self._zeroed = []
