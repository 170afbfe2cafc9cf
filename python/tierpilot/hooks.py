"""Reports the loss of a PyTorch training loop that knows nothing of Tierpilot.

An iteration is a step of the first optimizer that steps; its loss is the scalar on which backward()
was last called. What was scaled by a gradient scaler counts as it was before.
"""

import importlib.abc
import importlib.util
import sys
import threading
import time
import types

import tierpilot

_EVERY_S = 0.1  # a loss on a GPU has to be waited for: not at each step


class Reporter:
    def __init__(self, job):
        self._job = job
        self._lock = threading.Lock()
        self._optimizer = None
        self._loss = None
        self._unscaled = None
        self._iteration = 0
        self._next = 0.0

    def scaled(self, loss, result):
        self._unscaled = (id(result), loss)

    def backward(self, loss):
        if loss.numel() != 1:
            return
        if self._unscaled and self._unscaled[0] == id(loss):
            loss = self._unscaled[1]
        self._loss = loss.detach()

    def stepped(self, optimizer):
        with self._lock:
            if self._optimizer is None:
                self._optimizer = id(optimizer)
            # Of two networks that train each other, the first one counts.
            if self._optimizer != id(optimizer):
                return
            self._iteration += 1
            now = time.monotonic()
            if now < self._next or self._loss is None:
                return
            self._next = now + _EVERY_S
            loss = float(self._loss)
            self._job.report(iteration=self._iteration, loss=loss)


def _watch_torch(torch, reporter):
    backward = torch.Tensor.backward

    def watched_backward(tensor, *arguments, **options):
        reporter.backward(tensor)
        return backward(tensor, *arguments, **options)

    torch.Tensor.backward = watched_backward
    optimizer = torch.optim.Optimizer
    init = optimizer.__init__

    def watched_init(self, *arguments, **options):
        init(self, *arguments, **options)
        step = self.step.__func__

        def watched_step(this, *step_arguments, **step_options):
            result = step(this, *step_arguments, **step_options)
            reporter.stepped(this)
            return result

        # A method, as learning-rate schedules wrap it once more and look for one.
        self.step = types.MethodType(watched_step, self)

    optimizer.__init__ = watched_init
    scaler = torch.cuda.amp.GradScaler
    scale = scaler.scale

    def watched_scale(self, outputs):
        result = scale(self, outputs)
        if isinstance(outputs, torch.Tensor):
            reporter.scaled(outputs, result)
        return result

    scaler.scale = watched_scale


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with the module once it has been imported."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_tell(module):
            load(module)
            self._then(module)

        spec.loader.exec_module = load_and_tell
        return spec


def install(job=None):
    """From now on; does nothing where no Tierpilot runs the program."""
    job = tierpilot.job() if job is None else job
    if not job.connected:
        return
    reporter = Reporter(job)
    if "torch" in sys.modules:
        _watch_torch(sys.modules["torch"], reporter)
    else:
        sys.meta_path.insert(0, AfterImport("torch", lambda torch: _watch_torch(torch, reporter)))
