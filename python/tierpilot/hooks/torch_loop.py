"""PyTorch's training loops.

An iteration is a step of the first optimizer that steps, and of another one when that is gone or steps no more; its
loss is the scalar on which backward() was last called. What was scaled by a gradient scaler counts as it was before.
"""

import functools
import inspect
import threading
import weakref

_steps = weakref.WeakKeyDictionary()  # what stands in a class for its step: [what that calls]
_GIVEN_UP = 100  # steps of others in a row, after which the one that counted trains no more


def beneath(step):
    """Where what a hook calls stands, for others that have to come after it; None: it is no hook's."""
    return _steps.get(step)


class Steps:
    def __init__(self, progress):
        self._progress = progress
        self._lock = threading.Lock()
        self._optimizer = lambda: None  # a weak reference: what is trained no more is to be freed
        self._others = 0
        self._loss = None
        self._unscaled = None

    def scaled(self, loss, result):
        self._unscaled = weakref.ref(result), loss.detach()

    def backward(self, loss):
        if loss.numel() != 1:
            return
        if self._unscaled and self._unscaled[0]() is loss:
            loss = self._unscaled[1]
        self._loss = loss.detach()

    def stepped(self, optimizer):
        with self._lock:
            # Of two networks that train each other, the first one counts.
            if self._optimizer() is not optimizer:
                self._others += 1
                if self._optimizer() is not None and self._others < _GIVEN_UP:
                    return
                self._optimizer = weakref.ref(optimizer)
            self._others = 0
            # A loss on a GPU has to be waited for: not at each step.
            self._progress.advance(lambda: None if self._loss is None else float(self._loss))


class _Depth(threading.local):
    """A step may be one of a class above it, too."""

    now = 0


def watch(torch, progress):
    reporter = Steps(progress)
    backward = torch.Tensor.backward

    def watched_backward(tensor, *arguments, **options):
        reporter.backward(tensor)
        return backward(tensor, *arguments, **options)

    torch.Tensor.backward = watched_backward
    optimizer = torch.optim.Optimizer
    init = optimizer.__init__
    watched = weakref.WeakSet()
    depth = _Depth()

    def watched_step(step):
        calls = [step]

        @functools.wraps(step)
        def run(self, *arguments, **options):
            depth.now += 1
            try:
                result = calls[0](self, *arguments, **options)
            finally:
                depth.now -= 1
            if depth.now == 0:
                reporter.stepped(self)
            return result

        _steps[run] = calls
        return run

    def watched_init(self, *arguments, **options):
        init(self, *arguments, **options)
        kind = type(self)
        # Of the class: in the optimizer itself it would keep that, and all that it trains, alive.
        if kind not in watched and inspect.isfunction(kind.step):
            kind.step = watched_step(kind.step)
            watched.add(kind)

    optimizer.__init__ = watched_init
    # From 2.3 on the older name is another class, of which nobody's scaler is.
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
    scale = scaler.scale

    def watched_scale(self, outputs):
        result = scale(self, outputs)
        if isinstance(outputs, torch.Tensor):
            reporter.scaled(outputs, result)
        return result

    scaler.scale = watched_scale
