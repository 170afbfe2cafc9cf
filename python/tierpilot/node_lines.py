"""Lines to and from the socket of a Tierpilot node.

Several threads may use them, and handlers of signals: these come in the midst of a call of their own
thread, which does not go on before they are done. So nothing here waits for another call but for the
moment in which it reads and writes, and every call that waits does what all of them wait for.
"""

import collections
import contextlib
import copy
import os
import select
import socket
import threading
import time

_READ = 1 << 16
_MOST_UNREAD = 1 << 16
_FOLLOW_S = 10  # then it is asked for anyway, and the node may refuse
_MOMENT_S = 0.5  # more than reading and writing takes
_LOOK_EVERY_S = 0.05  # as another call may have read the answer
_GAP_S = 0.11  # the node refuses what comes within 0.1 s of the last checkpoint


class Save:
    """A checkpoint that the node is asked for."""

    def __init__(self, line, iteration, until):
        self.line = line
        self.iteration = iteration
        self.until = until
        self.not_before = 0.0
        self.sent = self.answered = False
        self.error = "the node did not answer"  # None: it was kept


class NodeLines:
    """One connection. `told` is called with each line that comes, and must not wait."""

    def __init__(self, path, told, wait=True):
        self.pid = os.getpid()
        self.broken = False  # what was sent and read is not known
        self._told = told
        self._lock = threading.RLock()
        self._within = False
        self._ahead = self._unread = self._unsent = b""
        self._full = False
        self._saves = collections.deque()  # the first one is the node's, others wait for their turn
        self._interrupted = None
        self._socket = None
        self.connected = False
        if path:
            self._connect(path, wait)

    def _connect(self, path, wait):
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.setblocking(wait)
            self._socket.connect(path)
            self._socket.setblocking(False)
            self.connected = True
        except OSError:
            self.close()

    def interrupted(self):
        """Whether a call that reads or writes cannot come to its end: this very one has interrupted it,
        as a signal's handler, or another thread's handler has and does not come back."""
        if not self._lock.acquire(timeout=_MOMENT_S):
            return True
        with self._lock:
            self._lock.release()
            return self._within

    def follow(self, interrupted):
        """What was asked for on that connection comes first; its answer may have come there."""
        self._interrupted = interrupted
        if interrupted._unsent:
            return  # in part: it will not be answered
        for save in tuple(interrupted._saves):
            if save.sent:
                before = copy.copy(save)
                before.until = min(save.until, time.monotonic() + _FOLLOW_S)
                self._saves.append(before)

    def hear(self):
        """What the node has said."""
        self._briefly(self._receive)

    def ahead(self):
        """Where interrupted(): what the other call is to tell yet, and maybe some that it has told."""
        for data in (self._unread + self._ahead, self._peek()):
            yield from data.split(b"\n")[:-1]

    def _peek(self):
        try:
            return self._socket.recv(_READ, socket.MSG_PEEK)
        except OSError:
            return b""

    def offer(self, line):
        """Sends the line, or a part of it with the rest to follow; False: nothing of it was sent."""
        return bool(self._briefly(lambda: self._receive() or self._send(line)))

    def save(self, save):
        """Asks for a checkpoint when those before it are answered; comes back when it is, or too late."""
        self._saves.append(save)
        try:
            while self._goes_on(save):
                self._wait(save.until)
        finally:
            with contextlib.suppress(ValueError):
                self._saves.remove(save)

    def close(self):
        self.connected = False
        if self._socket is not None:
            self._socket.close()

    def _briefly(self, act):
        """None where another thread's handler, which has interrupted a call, is waited for in vain."""
        if not self._lock.acquire(timeout=_MOMENT_S):
            return None
        try:
            with self._alone():
                return act()
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _alone(self):
        with self._lock:
            try:
                self._within = True
                yield
                self._within = False
            except BaseException:  # a handler's, as KeyboardInterrupt
                self.broken = True
                self._within = False
                self.close()
                raise

    def _goes_on(self, save):
        with self._alone():
            self._receive()
            for line in self._interrupted.ahead() if self._interrupted else ():
                self._told(self, line)
            self._ask()
            return self.connected and not save.answered and time.monotonic() < save.until

    def _ask(self):
        """Sends the first checkpoint's line, whichever call waits for it."""
        now = time.monotonic()
        self._push(b"")
        for save in tuple(self._saves):
            if save.answered or save.until < now:
                continue
            if not save.sent and save.not_before <= now and not self._unsent:
                save.sent = self._send(save.line)
            return

    def _wait(self, until):
        """A while, until there may be something to read or room to write."""
        file = self._socket.fileno()
        left = min(until - time.monotonic(), _LOOK_EVERY_S)
        if file < 0 or left <= 0:
            return
        poll = select.poll()
        poll.register(file, select.POLLIN | select.POLLOUT if self._full else select.POLLIN)
        poll.poll(left * 1000)

    def _send(self, line):
        # A line that was sent in part must be sent to its end before another one.
        if not self.connected or (self._unsent and not self._push(b"")):
            return False
        return self._push(line) or bool(self._unsent)

    def _push(self, line):
        """Sends what is left and the line; True when nothing is left."""
        data = self._unsent + line
        self._full = False
        if not data or not self.connected:
            return not data
        try:
            sent = self._socket.send(data, socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.close()
            return False
        self._full = sent < len(data)
        if sent or self._unsent:
            self._unsent = data[sent:]
        return not self._full

    def _receive(self):
        while self.connected:
            try:
                self._ahead = self._socket.recv(_READ, socket.MSG_PEEK)
                data = self._ahead and self._socket.recv(len(self._ahead))
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                return self.close()
            *lines, self._unread = (self._unread + data).split(b"\n")
            for line in lines:
                self._told(self, line)
            if len(self._unread) > _MOST_UNREAD:
                self.close()

    def answer(self, iteration, error):
        """For `told`: what became of a checkpoint; nothing where nobody waits for it."""
        waiting = [save for save in tuple(self._saves) if not save.answered]
        for save in reversed(waiting):  # what is sent before the last one came too late
            if save.sent and save.iteration == iteration:
                save.error, save.answered = error, True
                for other in waiting:
                    other.not_before = time.monotonic() + _GAP_S
                return
