"""Ends of objects, which Python tells by __del__, and signals, whose handlers run wherever Python code does: what a handler
raises within a __del__, as Ctrl-C does, Python forgets.

Handlers run behind a call and when a function is entered or a loop goes round, and nowhere else. What stands between two of
those is done as a whole, here and wherever it says so.
"""

import collections
import functools

from .fields import OwnerFields


def without_signals(function):
    """A __del__ that hands the object to a function of C, so that no handler runs in it."""
    return functools.lru_cache(maxsize=0)(function)  # of C too, and binds an object as a function of Python does


def quiet(finite, ended, **attributes):
    """A class whose objects end without any Python code, where signals arrive most: in the deque `ended`, and whoever calls
    next sees to them."""
    return type(f"Quiet{finite.__name__}", (finite,), {"__slots__": (), "__del__": without_signals(ended.append), **attributes})


class Finite:
    """Has an `owner` who hears of its end."""

    __slots__ = ()

    def __del__(self):
        owner = getattr(self, "owner", None)
        if owner is None:  # an interrupt came before it was made
            return
        try:
            owner._ended.append(self)
            owner._see_to_ended()
        except BaseException as error:
            owner._ended.append(Untold(error))


class Untold:
    """An exception, for whoever calls next; ends as a handle and what it is of."""

    used = False
    handles = unused = 1

    def __init__(self, error):
        self.error = error
        self.stored = self

    def end(self, owner):
        owner._over = None
        raise self.error


class Owner(OwnerFields):
    """Of handles and states. For who holds `_lock`, but for what says otherwise."""

    def __init__(self, used_handle):
        self._ended = collections.deque()  # they go on living here
        self._over = None  # a storage or a state without any
        self.used_handle = used_handle(self._ended)

    def _see_to_ended(self):
        """From any thread, wherever the last reference ends."""
        with self._lock:
            self._settle()

    def _settle(self):
        """Interrupted, it goes on there next time. It is entered again where Python collects garbage meanwhile."""
        ended, over = self._ended, self._over
        while True:
            if over is None:
                if not ended:
                    return
                # As a whole from here on, which is why nothing is called.
                one = ended[0]
                del ended[0]
                over = one.stored
                over.handles -= 1
                if not one.used:
                    over.unused -= 1
                if over.handles > 0:
                    over = None
                    continue
                self._over = over
            over.end(self)  # more than once, perhaps
            if self._over is over:
                self._over = None
            over = self._over
