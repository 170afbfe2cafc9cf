"""The other end of a job's connection, played for tests of the Python module tierpilot."""
import collections
import contextlib
import faulthandler
import itertools
import json
import os
import select
import socket
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, sys.argv.pop(1))
import tierpilot  # noqa: E402

LONG_S = 60  # no test comes near it, unless something stands still


class Node:
    """As the daemon: all connections of an attempt hear what becomes of its checkpoints."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen()
        self.open = {}
        self.most_open = self.accepted = 0
        self.lines = []
        self.torn = []  # what was no line of JSON
        self.saves = collections.deque()  # not yet answered
        self.news = threading.Condition()
        self.answering = True
        self._ends, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        self._end.close()
        self._thread.join()
        for end in (self.listener, self._ends, *self.open):
            end.close()

    def wait_for(self, condition):
        with self.news:
            if not self.news.wait_for(condition, LONG_S):
                raise AssertionError("the node has waited in vain")

    def of_type(self, kind):
        return [line for line in self.lines if line["type"] == kind]

    def say(self, **message):
        for end in tuple(self.open):
            with contextlib.suppress(OSError):  # it has gone
                end.sendall(json.dumps({"v": 1, **message}).encode() + b"\n")

    def answer(self):
        """Even iterations are kept; others fail, each with a reason of its own."""
        iteration = self.saves.popleft()
        if iteration % 2 == 0:
            self.say(type="checkpoint_saved", iteration=iteration, bytes=1, ms=1)
        else:
            self.say(type="checkpoint_failed", iteration=iteration, what=f"no {iteration}")

    def _serve(self):
        while True:
            ready, _, _ = select.select([self.listener, self._ends, *self.open], [], [])
            if self._ends in ready:
                return
            with self.news:
                for end in ready:
                    self._accept() if end is self.listener else self._read(end)
                while self.answering and self.saves:
                    self.answer()
                self.news.notify_all()

    def _accept(self):
        end, _ = self.listener.accept()
        self.open[end] = b""
        self.accepted += 1
        self.most_open = max(self.most_open, len(self.open))

    def _read(self, end):
        try:
            data = end.recv(1 << 16)
        except ConnectionResetError:  # it was told something that it did not read
            data = b""
        if not data:
            del self.open[end]
            return end.close()
        *lines, self.open[end] = (self.open[end] + data).split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.torn.append(line)
            return
        message["at"] = time.monotonic()
        self.lines.append(message)
        if message["type"] == "checkpoint":
            self.saves.append(message["iteration"])


class Trickle:
    """A socket that takes a few bytes at a time, and now and then none."""

    def __init__(self, within):
        self._within = within
        self._turns = itertools.cycle((3, 5, 0))

    def send(self, data, *flags):
        most = next(self._turns)
        if most == 0:
            raise BlockingIOError
        return self._within.send(data[:most], *flags)

    def __getattr__(self, name):
        return getattr(self._within, name)


class WithANode(unittest.TestCase):
    """A job of rank 0; nothing goes wrong unseen."""

    def setUp(self):
        faulthandler.dump_traceback_later(2 * LONG_S, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "job.sock")
        self.node = Node(self.path)
        self.addCleanup(self.node.close)
        self.job = tierpilot.Job(self.path, {})
        self.addCleanup(self.job.close)
        self.iterations = itertools.count(1)
        self.wrong = []

    def beside(self, work):
        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def save(self, timeout=LONG_S, iteration=None):
        """Keeps the answers that are not of the iteration that was asked for."""
        iteration = next(self.iterations) if iteration is None else iteration
        saved = self.job.checkpoint("state.pt", iteration, timeout)
        if saved != (iteration % 2 == 0):
            self.wrong.append((iteration, saved, self.job.checkpoint_error))
