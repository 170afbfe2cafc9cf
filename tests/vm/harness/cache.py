"""What is kept between runs, outside of the tree, and the locks that keep guests apart."""

import contextlib
import fcntl
import os
import pathlib
import sys
import time


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


def places():
    """Guests that may run beside each other: they wait for half of their time."""
    processors = len(os.sched_getaffinity(0))
    return min(3, processors + processors // 2)


@contextlib.contextmanager
def place_for_a_guest(alone):
    """More would spoil each other's times; beside one that measures times there is no other."""
    with contextlib.ExitStack() as opened:
        locks = [opened.enter_context(lock_file(f"place.{number}")) for number in range(places())]
        enough = all if alone else any  # in one order: two that are to be alone do not wait for each other
        told = False
        while not enough(taken(lock) for lock in locks):
            if not told:
                print("waiting for another run of tests/vm", file=sys.stderr, flush=True)
            told = True
            time.sleep(0.5)
        yield


@contextlib.contextmanager
def preparing():
    """What is kept is fetched and unpacked by one run at a time."""
    with lock_file("lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def lock_file(name):
    return open(directory() / name, "w", encoding="ascii")


def taken(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
