"""Reports the losses of programs that know nothing of Tierpilot, as they train with PyTorch,
scikit-learn or scipy.optimize. Losses that cost something to know are computed now and then only.
"""

import atexit
import os
import sys
import threading
import time

import tierpilot
from tierpilot.hooks import scipy_minimize, sklearn_cluster, sklearn_fits, sklearn_topics, torch_loop
from tierpilot.hooks.after_import import after_import

_EVERY_S = 0.1
_MOST_OF_THE_TIME = 0.05  # may go into computing losses

_WATCHED = {
    "torch": torch_loop.watch,
    "scipy.optimize": scipy_minimize.watch,
    "sklearn.neural_network._multilayer_perceptron": sklearn_fits.watch_perceptrons,
    "sklearn.ensemble._gb": sklearn_fits.watch_boosting,
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": sklearn_fits.watch_histograms,
    "sklearn.linear_model._stochastic_gradient": sklearn_fits.watch_descent,
    "sklearn.cluster._kmeans": sklearn_cluster.watch,
    "sklearn.decomposition._lda": sklearn_topics.watch,
}


class Progress:
    """Iterations of whatever trains in this process, counted through."""

    def __init__(self, job):
        self._job = job
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._iteration = 0
        self._next = 0.0
        self._untold = None

    def advance(self, loss, known=False):
        """One iteration more; loss() gives its loss, None where there is none. `known`: at no cost.

        What it raises is nobody's trouble: a library may be built otherwise than was tried.
        """
        if os.getpid() != self._pid:
            return  # a fork trains something of its own
        with self._lock:
            self._iteration += 1
            now = time.monotonic()
            if now < self._next:
                # One that is yet to be computed would keep its data alive.
                self._untold = _computed(loss) if known else None
                return
            self._untold = None
            worked_s = time.process_time()
            loss = _computed(loss)
            # On a busy machine it also waits for a processor, which costs the program nothing more.
            cost_s = min(time.monotonic() - now, time.process_time() - worked_s)
            self._next = now + max(_EVERY_S, cost_s / _MOST_OF_THE_TIME)
            if loss is not None:
                self._job.report(iteration=self._iteration, loss=loss)

    def end(self):
        """Tells the last loss, where it came too soon after the one before."""
        with self._lock:
            if self._untold is not None:
                self._job.report(iteration=self._iteration, loss=self._untold)
                self._untold = None


def _computed(loss):
    try:
        value = loss()
        return None if value is None else float(value)
    except Exception:  # whatever a library raises of an odd estimator: the program goes on
        return None


def install(job=None):
    """From now on; does nothing where no Tierpilot runs the program."""
    job = tierpilot.job() if job is None else job
    if not job.connected:
        return
    progress = Progress(job)
    atexit.register(progress.end)
    for name, watch in _WATCHED.items():
        after_import(name, lambda module, watch=watch: _attempt(watch, module, progress))


def _attempt(watch, module, progress):
    """A module of another version than is known stays as it is: no program ends of being watched."""
    try:
        watch(module, progress)
    except (AttributeError, TypeError) as error:
        print(f"tierpilot: the loss of {module.__name__} is not reported: {error}", file=sys.stderr)
