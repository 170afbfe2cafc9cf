"""What is kept between runs, outside of the tree, and the lock that keeps guests apart."""

import contextlib
import fcntl
import os
import pathlib
import sys


class Unavailable(Exception):
    """Something a guest needs cannot be had on this machine: the case is skipped."""


def directory():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(base) / "tierpilot" / "vm"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"no cache folder: {error}") from error
    return path


@contextlib.contextmanager
def only_one_guest():
    """Two emulated guests on a small machine would spoil each other's times."""
    with open(directory() / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run of tests/vm", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
