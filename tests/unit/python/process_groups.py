"""Processes that a test began with a group of their own."""
import os
import signal
import time

PATIENCE_S = 60


def lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def end_group(group):
    if lives(group):
        os.killpg(group, signal.SIGKILL)


def wait_for(happened):
    until_s = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > until_s:
            raise AssertionError("it does not happen")
        time.sleep(0.05)
