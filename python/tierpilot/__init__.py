"""What a training job says to the Tierpilot node that runs it, and is told by it.

    import tierpilot
    job = tierpilot.job()
    for step in range(steps):
        ...
        job.report(iteration=step, iterations=steps, loss=float(loss))
        if job.should_checkpoint():
            torch.save(state, "state.pt")
            job.checkpoint("state.pt", iteration=step)
        if job.should_stop():
            break

Where no Tierpilot runs the program, all of this does nothing. Only checkpoint() waits for the node,
and nothing raises because of it: a report that cannot be sent at once is dropped. The standard
library is all that is needed.
"""

import json
import math
import os
import select
import socket
import threading
import time

__all__ = ["Job", "job", "swap"]

_VERSION = 1
_MOST_UNREAD = 1 << 16
_FIRST_CHECKPOINT_S = 60  # until the node has said how often
_TAKES_CHECKPOINTS = json.dumps({"v": _VERSION, "type": "takes_checkpoints"}).encode() + b"\n"


def _whole(name, value):
    number = int(value)
    if number < 0:
        raise ValueError(f"{name} must be 0 or more, not {value}")
    return number


def _figure(value):
    """A float; nothing for what JSON cannot say (infinity, not a number)."""
    number = float(value)
    return number if math.isfinite(number) else None


class Job:
    """One process of a job. Its methods may be called from any thread."""

    def __init__(self, path=None, environment=os.environ):
        self._lock = threading.Lock()
        self._socket = None
        self._unread = b""
        self._unsent = b""
        self._stop = None
        self._cores = None
        self._share = None
        self._sources = []
        self._pid = os.getpid()
        self._checkpoint_asked = self._takes_checkpoints_told = False
        self._checkpoint_every_s = None
        self._checkpoint_last = self._saving_since = time.monotonic()
        self._checkpoint_answers = {}  # by iteration: why it failed, or None
        self.checkpoint_safe = None  # the last iteration that outlives the node
        self.checkpoint_error = None  # why the last checkpoint was not taken
        self.errors = []  # what the node did not understand, the last ones
        self.dropped = 0  # reports that could not be sent
        self.reports = 0  # how often report() was called
        self.rank = int(environment.get("RANK", 0))
        self.world_size = int(environment.get("WORLD_SIZE", 1))
        self.attempt = int(environment.get("TIERPILOT_ATTEMPT", 0))
        self.restarts = int(environment.get("TIERPILOT_RESTARTS", 0))
        # The file that an earlier try saved; None where it begins anew.
        self.restored = environment.get("TIERPILOT_CHECKPOINT") or None
        self.restored_iteration = int(environment.get("TIERPILOT_CHECKPOINT_ITERATION", 0))
        path = environment.get("TIERPILOT_JOB_SOCKET") if path is None else path
        if path:
            self._connect(path)

    def _connect(self, path):
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            channel.connect(path)
            channel.setblocking(False)
            self._socket = channel
        except OSError:
            channel.close()

    @property
    def connected(self):
        """Whether somebody listens."""
        return self._socket is not None

    def report(self, iteration, loss=None, iterations=0, samples=0, **measures):
        """How far the job is: this iteration, of how many, samples seen, the loss, any measures.

        False: it was not sent, as nobody listens or reads.
        """
        message = {"v": _VERSION, "type": "progress", "iteration": _whole("iteration", iteration)}
        if iterations:
            message["iterations"] = _whole("iterations", iterations)
        if samples:
            message["samples"] = _whole("samples", samples)
        if loss is not None:
            message["loss"] = _figure(loss)
        self.reports += 1
        for source in self._sources:
            measures = {**source(), **measures}
        if measures:
            message["measures"] = {name: _figure(value) for name, value in measures.items()}
        with self._lock:
            return self._send(json.dumps(message, allow_nan=False).encode() + b"\n")

    def measure(self, source):
        """From now on what `source()` gives, a dict of figures, goes with each report."""
        self._sources.append(source)

    def should_stop(self):
        """Why the job is asked to end, once it is; else None. It is killed a while later."""
        with self._lock:
            self._receive()
            return self._stop

    def cores(self):
        """How many cores it may use now, a fraction too, where that changes while it runs.

        None: nobody has said, and it has what it was given at its start.
        """
        with self._lock:
            self._receive()
            return self._cores

    def share(self):
        """How many thousandths of its GPU it may use now; None where it shares none."""
        with self._lock:
            self._receive()
            return self._share

    def should_checkpoint(self):
        """Whether to save now: when that was asked for, or when it is time.

        How often is told by Tierpilot, from how long saving takes and how often the job's units
        fail. Only rank 0 saves; False for others.
        """
        with self._lock:
            self._receive()
            if self._socket is None or self.rank != 0:
                return False
            if not self._takes_checkpoints_told:
                self._takes_checkpoints_told = self._send(_TAKES_CHECKPOINTS)
            every_s = self._checkpoint_every_s or _FIRST_CHECKPOINT_S
            now = time.monotonic()
            if not self._checkpoint_asked and now - self._checkpoint_last < every_s:
                return False
            self._saving_since = now
            return True

    def checkpoint(self, path, iteration, timeout=600):
        """Keeps a file of the job's folder: what begins after a failure finds it in `restored`.

        Waits until the node has it; it may be written to again then. Iterations must rise. False:
        it was not kept, and `checkpoint_error` says why. Does nothing on other ranks than 0.
        """
        iteration = _whole("iteration", iteration)
        if self.rank != 0:
            return False
        with self._lock:
            now = time.monotonic()
            timed = self._saving_since > self._checkpoint_last  # should_checkpoint() was asked
            message = {
                "v": _VERSION,
                "type": "checkpoint",
                "path": os.fspath(path),
                "iteration": iteration,
                "saving_ms": int((now - self._saving_since) * 1000) if timed else 0,
            }
            line = json.dumps(message).encode() + b"\n"
            self._checkpoint_answers.pop(iteration, None)
            answered = self._send_all(line, now + timeout) and self._wait_for(
                lambda: iteration in self._checkpoint_answers, now + timeout
            )
            self._checkpoint_last = time.monotonic()
            self._checkpoint_asked = False
            if not answered:
                self.checkpoint_error = "the node did not answer"
                return False
            self.checkpoint_error = self._checkpoint_answers.pop(iteration)
            return self.checkpoint_error is None

    def close(self):
        """Ends the connection; what comes later does nothing."""
        with self._lock:
            self._close()

    def _send(self, line):
        if self._socket is None:
            return False
        self._receive()
        # A line that was sent in part must be sent to its end before another one.
        if self._unsent and not self._push(b""):
            self.dropped += 1
            return False
        if self._push(line) or self._unsent:
            return True
        self.dropped += 1
        return False

    def _send_all(self, line, until):
        self._unsent += line
        while self._socket is not None and not self._push(b""):
            if not self._wait(until, select.POLLIN | select.POLLOUT):
                return False
            self._receive()
        return self._socket is not None

    def _wait_for(self, condition, until):
        while self._socket is not None:
            self._receive()
            if condition():
                return True
            if not self._wait(until, select.POLLIN):
                return False
        return condition()

    def _wait(self, until, events):
        """False: it is too late."""
        left = until - time.monotonic()
        if left <= 0 or self._socket is None:
            return False
        poll = select.poll()
        poll.register(self._socket, events)
        poll.poll(left * 1000)
        return True

    def _push(self, line):
        """Sends what is left and the line; True when nothing is left."""
        data = self._unsent + line
        try:
            sent = self._socket.send(data) if self._socket else 0
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._close()
            return False
        if sent == 0 and not self._unsent:
            return False  # not a byte of it went: it may be dropped
        self._unsent = data[sent:]
        return not self._unsent

    def _receive(self):
        while self._socket is not None:
            try:
                data = self._socket.recv(4096)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                return self._close()
            if not data:
                return self._close()
            self._unread += data
            *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                self._told(line)
            if len(self._unread) > _MOST_UNREAD:
                self._close()

    def _told(self, line):
        try:
            message = json.loads(line)
            kind = message.get("type")
        except (ValueError, AttributeError):
            return
        if kind == "stop":
            self._stop = str(message.get("reason") or "asked to end")
        elif kind == "cores":
            cores = message.get("cores")
            if isinstance(cores, (int, float)) and 0 < cores < math.inf:
                self._cores = float(cores)
        elif kind == "share":
            milli = message.get("milli")
            if isinstance(milli, int) and milli > 0:
                self._share = milli
        elif kind == "checkpoint_now":
            self._checkpoint_asked = True
        elif kind == "checkpoint_every":
            seconds = message.get("seconds")
            if isinstance(seconds, (int, float)) and 0 < seconds < math.inf:
                self._checkpoint_every_s = float(seconds)
        elif kind == "checkpoint_safe":
            self.checkpoint_safe = message.get("iteration")
        elif kind in ("checkpoint_saved", "checkpoint_failed"):
            failed = kind == "checkpoint_failed"
            why = str(message.get("what")) if failed else None
            self._checkpoint_answers[message.get("iteration")] = why
        elif kind == "error":
            self.errors = (self.errors + [str(message.get("what"))])[-16:]

    def _close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


_job = None
_job_lock = threading.Lock()


def job():
    """The process's job, connected at the first call."""
    global _job
    with _job_lock:
        if _job is None or _job._pid != os.getpid():
            # After a fork the parent goes on with its own connection.
            _job = Job()
        return _job


def swap(budget=None, policy="swap", tiers=None, recompute=False, plan_file=None, states=None, device=None):
    """Keeps a PyTorch training within a memory budget, as "4GiB": see tierpilot-swap(1).

        with tierpilot.swap(budget="4GiB"):
            loss = model(x).sum()
        loss.backward()

    Without a budget it is TIERPILOT_SWAP_BUDGET, and without tiers they are TIERPILOT_SWAP_TIERS: a
    Tierpilot task that was submitted with room for swapping has both. Workers that torchrun starts
    divide what these say.

    With `recompute`, blocks of the model are computed again in the backward pass where that is
    cheaper than copies: their forward passes have to depend on their inputs and weights alone.

    What optimisers of torch.optim keep for their parameters leaves between their steps, too, from the
    first `with` on: on a processor with policy "swap", elsewhere with `states=True`; never with
    `states=False`.

    The budget is of the memory of `device`: "cpu", "cuda" or "cuda:N". If it is not said, it is a GPU
    that PyTorch uses by then, else the processor. Tensors of others stay where they are.

    What was learned is kept in `plan_file` at the end of the program, and the next run starts from it.

    Needs PyTorch, from 1.13 on, and libtierpilot-swap, which are loaded with the first call.
    """
    from . import swapping

    return swapping.swap(budget, policy, tiers, recompute, plan_file, states, device)


def describe(module, example_inputs, batch=None, iterations=None, job=None):
    """The model card of a PyTorch module, as `--model-card` wants it: a dict.

        json.dump(tierpilot.describe(model, torch.randn(32, 784), iterations=5000), file)

    Needs PyTorch, from 1.13 on; no GPU. tierpilot.cards.describe() tells of its arguments.
    """
    from . import cards

    return cards.describe(module, example_inputs, batch, iterations, job)
