"""PyTorch's training loops.

An iteration is a step of the first optimizer that steps; its loss is the scalar on which backward()
was last called. What was scaled by a gradient scaler counts as it was before.
"""

import threading
import types


class Steps:
    def __init__(self, progress):
        self._progress = progress
        self._lock = threading.Lock()
        self._optimizer = None
        self._loss = None
        self._unscaled = None

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
            # A loss on a GPU has to be waited for: not at each step.
            self._progress.advance(lambda: None if self._loss is None else float(self._loss))


def watch(torch, progress):
    reporter = Steps(progress)
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
