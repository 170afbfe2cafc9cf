"""Which saved storage has which number in libtierpilot-swap, and which of them a tensor that is saved is part of."""

from .core import MEMORY_NEWS, UNFINISHED
from .endings import Owner
from .engine import Unfinished, nodes_so_far
from .saved import Counter, Dropped, Handle, Stored, Untouched
from .storages import Layout


class Book(Owner):
    """Of a Swap, which has `_core`, `_news`, `_places` and a device."""

    def __init__(self, used_handle):
        super().__init__(used_handle)
        self._by_number = {}
        self._live = {}  # the latest of each storage, by its address
        self._unfinished = Unfinished()

    def _saved(self, tensor, root, maker, storage, size):
        key = storage._cdata
        stored = self._live.get(key)
        if stored is not None:
            handle = self._another(stored, tensor, root, maker)
            if handle is not None:
                return handle
        self._backward = self._end_awaited = False
        stored = Stored(key, root, tensor, storage, size)
        handle = Handle(self, stored)  # its end is what is saved's, wherever this is interrupted
        for number in self._saving(stored, tensor, maker):
            if number == 0:
                return Untouched(tensor)
            stored.number = number
            self._by_number[number] = stored
            self._live[key] = stored
            return handle

    def _saving(self, stored, tensor, maker):
        """For a loop that takes one number."""
        place, kind, flags = self._places.of(tensor, maker)
        unfinished = self._unfinished
        if maker is None or unfinished.node is not None:
            node = nodes_so_far()
            if node != unfinished.node:
                self._finish(unfinished)
            if maker is None:  # operators fill nothing that has a gradient
                unfinished.node = node
                flags |= UNFINISHED
        if self._news.value & MEMORY_NEWS:
            self._tell_memory()
        stream = self._current_stream() if self._streams else 0
        stored.address = stored.storage.data_ptr()
        return self._core.saving(place, kind, flags, stored.address, stored.size, stream)

    def _finish(self, unfinished):
        """Its operator has returned."""
        if unfinished.node is not None:
            self._core.finished()
            unfinished.node = None

    def _another(self, stored, tensor, root, maker):
        """Of a storage that was saved before; None: its content is another one now, or may be."""
        handle = Handle(self, stored)  # from here on nothing that is collected meanwhile ends it
        # Without other handles it has ended before, and its copy is under way perhaps.
        if stored.handles == 1 or not stored.at_its_address():
            return None
        counter = stored.counter_of(root)
        if counter is not None and counter.version != tensor._version:
            return None
        # What is written by way of other counters, or of none as to `x.data` of an input, is in no earlier copy.
        anew = stored.number and (counter is None or maker is None)
        if anew and stored.weak is not None:  # what it has now is its own copy
            return None
        if anew and not self._save_anew(stored, tensor, maker):
            return Untouched(tensor)
        if counter is None:
            counter = Counter(root, tensor)
            stored.others = (*stored.others, counter)
        handle.layout, handle.counter = Layout(tensor), counter
        return handle

    def _save_anew(self, stored, tensor, maker):
        """Whether it could be."""
        dropped = Dropped(stored.storage)
        for number in self._saving(stored, tensor, maker):
            if number == 0:
                return False
            self._rename(stored, number, dropped)
            self._settle()
            return True

    def _rename(self, stored, number, dropped):
        dropped.number, stored.number = stored.number, number
        self._by_number[dropped.number] = dropped
        if number:
            self._by_number[number] = stored
        elif self._live.get(stored.key) is stored:
            del self._live[stored.key]
        self._ended.append(dropped)

    def _reap(self):
        """Lets go of what has left; whether that was anything."""
        any_left = False
        while self._core.left():
            any_left = True
            try:
                self._let_go(self._core.named)
            except BaseException:
                self._let_go(self._core.named)  # before others have their numbers
                raise
        return any_left

    def _let_go(self, named):
        while named:
            stored = self._by_number.get(named[0])
            if isinstance(stored, Stored) and stored.moved():
                self._rename(stored, 0, Dropped(None))
            elif stored is not None:
                stored.let_go()
                if stored.handles == 0:
                    self._forget(stored)
            del named[0]

    def _tell_held(self):
        """Who else holds a storage that has left: to copy it freed nothing."""
        for stored in list(self._by_number.values()):
            if stored.held():
                self._core.held(stored.number)

    def _forget(self, stored):
        if self._by_number.get(stored.number) is stored:
            del self._by_number[stored.number]
        if self._live.get(stored.key) is stored:
            del self._live[stored.key]
        stored.number = 0  # others have it from now on, and this may end once more
