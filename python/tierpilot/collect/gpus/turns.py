"""Trainings on a GPU that belongs to one of them at a time, while the next ones get ready.

Each is a process of its own, which asks before each part of its work:

  context  it makes a context of CUDA and moves the model there, which may be beside a window
  load     its first iterations load kernels, which may not
  turn     the GPU belongs to it: it warms up
  window   it is measured: nobody begins to load, and who loads has ended, or takes too long

Loading is begun by several at once, as a turn begins, so that few windows wait for that. Who is in one part
for too long is killed, and the others go on; waiting is no part.
"""

import contextlib
import math
import os
import signal
import sys
import time
import traceback
from multiprocessing import Pipe, connection

from ..child import forked, no_answer

_MOST_AHEAD = 6
_CORES_OF_MEASURED = 2  # its own thread, and the one that PyTorch has for gradients
_BEGINS_S = 0.05  # of a turn
_PATIENCE_S = 0.6  # a window waits for who loads so long; two iterations disturb little
_LOOK_S = 0.02
PARTS = ("start", "context", "load", "turn", "window")


def ahead():
    """How many may get ready beside one that is measured; 0: each is begun when the last has ended."""
    return min(_MOST_AHEAD, max(0, len(os.sched_getaffinity(0)) - _CORES_OF_MEASURED))


class Turn:
    """What a child has of it."""

    def __init__(self, pipe):
        self._pipe = pipe

    def ask(self, part, tells_apart=None):
        self._pipe.send((part, tells_apart))

    def granted(self):
        return self._pipe.poll() and self._pipe.recv()

    def wait(self, part, tells_apart=None):
        self.ask(part, tells_apart)
        self._pipe.recv()


class _Child:
    def __init__(self, work, others):
        self.pipe, theirs = Pipe()
        self.part, self.asks = "start", None
        self.spent_s = dict.fromkeys((*PARTS, "wait"), 0.0)
        self._since_s = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = forked()
        if self.pid == 0:
            try:
                for pipe in (self.pipe, *others):
                    pipe.close()
                _answer(work, theirs)
            finally:
                os._exit(1)
        theirs.close()

    def left_s(self, limit_s):
        """Until it has been in its part for that long; endless while it waits for another."""
        return math.inf if self._waits() else self._since_s + limit_s - time.monotonic()

    def _waits(self):
        return self.asks not in (None, "window")  # for that one it warms up further

    def enter(self, part, asks=None):
        """It is in that part, or waits for what it asks."""
        now_s = time.monotonic()
        self.spent_s["wait" if self._waits() else self.part] += now_s - self._since_s
        self.part, self.asks, self._since_s = part, asks, now_s

    def grant(self):
        self.enter(self.asks)
        try:
            self.pipe.send(True)
        except OSError:
            pass  # it died, which is told by its end of the pipe

    def has_context(self):
        return self.part != "start"

    def has_turn(self):
        return self.part in ("turn", "window")

    def begins(self):
        return self.part == "turn" and not self.asks and time.monotonic() - self._since_s < _BEGINS_S

    def loads(self):
        return self.part == "load" and not self.asks

    def loads_long(self):
        return self.loads() and time.monotonic() - self._since_s > _PATIENCE_S

    def end(self):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _answer(work, pipe):
    try:
        answer = ("done", work(Turn(pipe)))
    except Exception:
        answer = ("failed", traceback.format_exc())
    pipe.send(answer)
    os._exit(0)


class Turns:
    def __init__(self, most_ahead, limit_s):
        self._most_ahead = most_ahead
        self._limit_s = limit_s
        self._children = {}  # by number of the work, until they have ended
        self._apart = None  # the driver tells processes apart; None: not known yet
        self._ended = []  # what they spent in each part
        self._impatient = 0  # windows beside which others loaded
        self._began_s = time.monotonic()

    def run(self, works, tell):
        """Calls each work with a Turn in a process of its own. tell(number, what it returned, why it
        failed, or did not answer within the limit) in the order in which they end. No process is left behind."""
        waiting = list(enumerate(works))[::-1]
        try:
            while waiting or self._children:
                while waiting and self._may_begin():
                    number, work = waiting.pop()
                    self._children[number] = _Child(work, [child.pipe for child in self._children.values()])
                self._grant()
                ready = connection.wait([child.pipe for child in self._children.values()], self._look_s())
                for number in [number for number, child in self._children.items() if child.pipe in ready]:
                    self._hear(number, tell)
                self._end_hanging(tell)
        finally:
            for child in self._children.values():
                child.end()

    def spent(self):
        """A line for people: seconds of a configuration, on average. Empty: nothing was measured."""
        if not self._ended:
            return ""
        total_s = time.monotonic() - self._began_s
        part = {name: sum(spent[name] for spent in self._ended) / len(self._ended) for name in (*PARTS, "wait")}
        preparing_s = part["start"] + part["context"] + part["load"]
        return (
            f"a configuration took {total_s / len(self._ended):.2f} s: preparing {preparing_s:.2f} s "
            f"(described {part['start']:.2f}, context {part['context']:.2f}, first iterations {part['load']:.2f}), "
            f"waiting for its turn {part['wait']:.2f} s, "
            f"measured {part['turn'] + part['window']:.2f} s (warm-up {part['turn']:.2f}, window {part['window']:.2f}), "
            f"{self._impatient} windows beside first iterations of others"
        )

    def _look_s(self):
        """How long nothing is to be done unless a child says something."""
        children = self._children.values()
        if any(child.asks == "window" for child in children):
            return _LOOK_S
        least_s = min(child.left_s(self._limit_s) for child in children)
        return None if least_s == math.inf else max(0, least_s)

    def _end_hanging(self, tell):
        hanging = [number for number, child in self._children.items() if child.left_s(self._limit_s) <= 0]
        for number in hanging:
            child = self._children.pop(number)
            child.end()
            child.pipe.close()
            if child.part != "ended":
                tell(number, None, no_answer(self._limit_s))

    def _may_begin(self):
        if not self._most_ahead:
            return not self._children
        preparing = [child for child in self._children.values() if child.part in ("start", "context", "load")]
        return len(preparing) < self._most_ahead

    def _grant(self):
        for part in ("turn", "load", "context", "window"):
            asking = [child for _, child in sorted(self._children.items()) if child.asks == part]
            if part == "load" and not self._may_load(len(asking)):
                continue
            for child in asking:
                if part == "load" or self._may(child, part):
                    self._impatient += part == "window" and any(other.loads() for other in self._children.values())
                    child.grant()

    def _may(self, asking, part):
        others = [child for child in self._children.values() if child is not asking]
        if part == "context":
            return self._apart or not any(child.has_context() for child in others)
        if part == "turn":
            return not any(child.has_turn() for child in others)
        return all(child.loads_long() for child in others if child.loads())

    def _may_load(self, asking):
        children = self._children.values()
        begins = all(child.begins() for child in children if child.has_turn())
        enough = asking >= self._most_ahead / 3 or not any(child.asks == "turn" for child in children)
        return begins and enough and not any(child.loads() for child in children)

    def _hear(self, number, tell):
        child = self._children[number]
        try:
            said, value = child.pipe.recv()
        except (EOFError, OSError):
            return self._bury(number, tell)
        if said in PARTS:
            child.enter(child.part, said)
            if said == "load" and self._apart is None:
                self._apart = value
            return None
        child.enter("ended")
        if said == "done":
            self._ended.append(child.spent_s)
        return tell(number, *((value, None) if said == "done" else (None, value)))

    def _bury(self, number, tell):
        child = self._children[number]
        _, status = os.waitpid(child.pid, 0)
        del self._children[number]
        child.pipe.close()
        if child.part != "ended":
            tell(number, None, f"its process ended with status {status}")
