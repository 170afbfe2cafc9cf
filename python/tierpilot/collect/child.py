"""A piece of work in a process of its own."""

import ctypes
import json
import os
import select
import signal
import time
import traceback

_READ_BYTES = 1 << 16
_PR_SET_PDEATHSIG = 1


def no_answer(limit_s):
    """Why what took longer was left out."""
    return f"it did not answer within {limit_s:g} s and was killed (--time-limit gives it more)"


def forked():
    """As os.fork(). Ctrl-C does not reach the child: it means the parent, which ends the child and which the child
    does not outlive."""
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        _end_with(parent)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except KeyboardInterrupt:  # pressed meanwhile: the caller does not know of it yet
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return child


def _end_with(parent):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except AttributeError:
        pass  # another C library
    if os.getppid() != parent:
        os._exit(1)


def in_child(work, limit_s=None):
    """What it returns; nothing else stays of it. RuntimeError: it failed, or was killed since it had not
    answered in so long."""
    read, write = os.pipe()
    child = forked()
    if child == 0:
        os.close(read)
        try:
            answer = json.dumps([work()])
        except Exception:
            answer = json.dumps(traceback.format_exc())
        with os.fdopen(write, "w") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(write)
    text = None
    try:
        text = _heard(read, limit_s)
    finally:
        os.close(read)
        if text is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if text is None:
        raise RuntimeError(no_answer(limit_s))
    answer = json.loads(text) if text else f"its process ended with status {status}"
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return answer[0]


def _heard(pipe, limit_s):
    """All that comes until its other end is closed; None: that took longer."""
    until_s = None if limit_s is None else time.monotonic() + limit_s
    told = b""
    while select.select([pipe], [], [], None if until_s is None else max(0, until_s - time.monotonic()))[0]:
        part = os.read(pipe, _READ_BYTES)
        if not part:
            return told
        told += part
    return None
