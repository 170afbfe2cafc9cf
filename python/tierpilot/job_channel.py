"""The job of this process, as it is told to the Tierpilot node and hears of it."""

import contextlib
import json
import math
import os
import threading
import time

from .node_lines import NodeLines, Save

_VERSION = 1
_MOST_MEASURES = 32  # of a report, or the node refuses it whole
_FIRST_CHECKPOINT_S = 60  # until the node has said how often
_FIRST_RETRY_PAUSE_S = 1
# Of reports of all local ranks, but 40 and 100 of one: half of what a node reads. More would wait,
# and tell later what was earlier.
_MOST_AT_ONCE, _MOST_A_SECOND, _FEW_RANKS = 160, 400, 4
_TAKES_CHECKPOINTS = json.dumps({"v": _VERSION, "type": "takes_checkpoints"}).encode() + b"\n"


def _whole(name, value):
    number = int(value)
    if not 0 <= number < 1 << 64:  # or the node would not understand the line
        raise ValueError(f"{name} must be 0 or more, and less than 2^64, not {value}")
    return number


def _figure(value):
    """A float; nothing for what JSON cannot say (infinity, not a number)."""
    number = float(value)
    return number if math.isfinite(number) else None


def _number(environment, name, other):
    """What others set may be anything."""
    try:
        return int(environment.get(name, other))
    except ValueError:
        return other


class Job:
    """One process of a job.

    Its methods may be called from any thread, and by handlers of signals, whatever they interrupt.
    Only checkpoint() waits for the node. What a fork inherits connects anew with its first call.
    """

    def __init__(self, path=None, environment=os.environ):
        self._stop = None
        self._cores = None
        self._share = None
        self._sources = []
        self._pid = os.getpid()
        self._takes_checkpoints_told = False
        self._checkpoint_requests = self._requests_met = 0
        self._checkpoint_every_s = _FIRST_CHECKPOINT_S
        self._checkpoint_last = time.monotonic()  # that was kept
        self._saving_since = None  # as should_checkpoint() said so
        self._retry_at = self._retry_pause_s = 0
        self.checkpoint_safe = None  # the last iteration that outlives the node
        self.checkpoint_error = None  # why the last checkpoint was not taken
        self.errors = []  # what the node did not understand, the last ones
        self.dropped = 0  # reports that could not be sent
        self.reports = 0  # how often report() was called
        self._ranks = max(_FEW_RANKS, _number(environment, "LOCAL_WORLD_SIZE", 1))
        self._most_at_once = max(1, _MOST_AT_ONCE / self._ranks)
        self._may_report = self._most_at_once
        self._may_report_since = time.monotonic()
        self._told_last = False
        self.rank = _number(environment, "RANK", 0)
        self.world_size = _number(environment, "WORLD_SIZE", 1)
        self.attempt = _number(environment, "TIERPILOT_ATTEMPT", 0)
        self.restarts = _number(environment, "TIERPILOT_RESTARTS", 0)
        # The file that an earlier try saved; None where it begins anew.
        self.restored = environment.get("TIERPILOT_CHECKPOINT") or None
        self.restored_iteration = _number(environment, "TIERPILOT_CHECKPOINT_ITERATION", 0)
        self._path = environment.get("TIERPILOT_JOB_SOCKET") if path is None else path
        self._lines = NodeLines(self._path, self._told)

    @property
    def connected(self):
        """Whether somebody listens."""
        return self._lines.connected

    def report(self, iteration, loss=None, iterations=0, samples=0, **measures):
        """How far the job is: this iteration, of how many, samples seen, the loss, any measures.

        False: it was not sent, as nobody listens or reads, or more come than a node reads, a hundred in
        a second. The last iteration is sent in any case, once.
        """
        message = {"v": _VERSION, "type": "progress", "iteration": _whole("iteration", iteration)}
        if iterations:
            message["iterations"] = _whole("iterations", iterations)
        if samples:
            message["samples"] = _whole("samples", samples)
        if loss is not None:
            message["loss"] = _figure(loss)
        self.reports += 1
        is_last = bool(iterations) and iteration >= iterations
        if not self._in_time(is_last and not self._told_last):
            self.dropped += self.connected
            return False
        self._told_last = is_last
        if len(measures) > _MOST_MEASURES:
            raise ValueError(f"report: {len(measures)} measures, and {_MOST_MEASURES} are the most")
        for source in self._sources:
            for name, value in source().items():
                if len(measures) < _MOST_MEASURES:
                    measures.setdefault(name, value)
        if measures:
            message["measures"] = {name: _figure(value) for name, value in measures.items()}
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        with self._connection() as lines:
            sent = lines.offer(line)
            if not sent and lines.connected:
                self.dropped += 1
            return sent

    def measure(self, source):
        """From now on what `source()` gives, a dict of figures, goes with each report."""
        self._sources.append(source)

    def should_stop(self):
        """Why the job is asked to end, once it is; else None. It is killed a while later."""
        self._hear()
        return self._stop

    def cores(self):
        """How many cores it may use now, a fraction too, where that changes while it runs.

        None: nobody has said, and it has what it was given at its start.
        """
        self._hear()
        return self._cores

    def share(self):
        """How many thousandths of its GPU it may use now; None where it shares none."""
        self._hear()
        return self._share

    def should_checkpoint(self):
        """Whether to save now: when that was asked for, or when it is time.

        How often is told by Tierpilot, from how long saving takes and how often the job's units
        fail. Where one is not kept, it is time again after a second, then two, four, up to that.
        Only rank 0 saves; False for others.
        """
        self._hear()
        if not self.connected or self.rank != 0:
            return False
        if not self._takes_checkpoints_told:
            with self._connection() as lines:
                self._takes_checkpoints_told = lines.offer(_TAKES_CHECKPOINTS)
        now = time.monotonic()
        asked = self._requests_met != self._checkpoint_requests
        if not asked and now - self._checkpoint_last < self._checkpoint_every_s:
            return False
        if now < self._retry_at:
            return False
        self._saving_since = now
        return True

    def checkpoint(self, path, iteration, timeout=600):
        """Keeps a file of the job's folder: what begins after a failure finds it in `restored`.

        Waits until the node has it; it may be written to again then. Iterations must rise. False:
        it was not kept, and `checkpoint_error` says why. Does nothing on other ranks than 0.

        A second one, of another thread or a signal's handler, waits until the first is answered.
        """
        iteration = _whole("iteration", iteration)
        if self.rank != 0:
            return False
        now = time.monotonic()
        since = self._saving_since
        requests = self._checkpoint_requests  # later ones want another
        message = {
            "v": _VERSION,
            "type": "checkpoint",
            "path": os.fsencode(path).decode(errors="replace"),  # what is no UTF-8 is no JSON
            "iteration": iteration,
            "saving_ms": 0 if since is None else int((now - since) * 1000),
        }
        save = Save(json.dumps(message).encode() + b"\n", iteration, now + timeout)
        with self._connection() as lines:
            lines.save(save)
        self._saving_since = None
        self.checkpoint_error = save.error
        kept = save.error is None
        if kept:
            self._checkpoint_last = time.monotonic()
            self._requests_met = max(self._requests_met, requests)
        self._pause(0 if kept else max(2 * self._retry_pause_s, _FIRST_RETRY_PAUSE_S))
        return kept

    def close(self):
        """Ends the connection; what comes later does nothing."""
        self._path = None
        self._lines.close()

    def _in_time(self, is_last):
        now = time.monotonic()
        more = (now - self._may_report_since) * _MOST_A_SECOND / self._ranks
        self._may_report = min(self._most_at_once, self._may_report + more)
        self._may_report_since = now
        if self._may_report < 1 and not is_last:
            return False
        self._may_report = max(0, self._may_report - 1)
        return True

    def _pause(self, seconds):
        """Before the next try."""
        self._retry_pause_s = min(seconds, self._checkpoint_every_s)
        self._retry_at = time.monotonic() + self._retry_pause_s

    def _current(self):
        lines = self._lines
        if lines.broken or lines.pid != os.getpid():
            lines.close()  # in a fork; the parent's stays open
            lines = self._lines = NodeLines(self._path, self._told, wait=False)
        return lines

    @contextlib.contextmanager
    def _connection(self):
        """For one call. A handler that has interrupted one which was just reading or writing has a
        connection of its own: the other cannot come to an end before."""
        lines = self._current()
        if not lines.connected or not lines.interrupted():
            yield lines
            return
        with contextlib.closing(NodeLines(self._path, self._told, wait=False)) as own:
            own.follow(lines)
            yield own

    def _hear(self):
        lines = self._current()
        if not lines.interrupted():
            lines.hear()
            return
        for line in lines.ahead():
            self._told(None, line)

    def _told(self, lines, line):
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
        elif kind == "checkpoint_now" and lines in (None, self._lines):  # others hear it again
            self._checkpoint_requests += 1
            self._pause(0)
        elif kind == "checkpoint_every":
            seconds = message.get("seconds")
            if isinstance(seconds, (int, float)) and 0 < seconds < math.inf:
                self._checkpoint_every_s = float(seconds)
        elif kind == "checkpoint_safe":
            self.checkpoint_safe = message.get("iteration")
        elif kind in ("checkpoint_saved", "checkpoint_failed") and lines:
            failed = kind == "checkpoint_failed"
            lines.answer(message.get("iteration"), str(message.get("what")) if failed else None)
        elif kind == "error":
            self.errors = (self.errors + [str(message.get("what"))])[-16:]


_job = None
_job_lock = threading.RLock()


def job():
    """The process's job, connected at the first call."""
    with _job_lock:
        if not _known():
            made = Job()
            if _known():  # by a signal's handler meanwhile
                made.close()
            else:
                _keep(made)
        return _job


def _known():
    return _job is not None and _job._pid == os.getpid()


def _keep(made):
    global _job
    _job = made


def _forked():
    # The thread that held it is the parent's.
    global _job_lock
    _job_lock = threading.RLock()


os.register_at_fork(after_in_child=_forked)
