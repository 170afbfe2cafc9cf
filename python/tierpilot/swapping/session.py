"""Saved tensors of PyTorch's autograd, by its hooks, in the hands of libtierpilot-swap."""

import gc
import operator
import threading
import traceback

import torch
from torch.autograd.graph import saved_tensors_hooks

import tierpilot

from ..randomness import random_states, set_random_states
from . import core, devices, processes, segments, steps
from .book import Book
from .block_state import BlockState
from .core import AHEAD_NEWS, LEFT_NEWS, MEMORY_NEWS
from .engine import traced, untraced
from .optimisers import States
from .places import Places, number_of
from .recompute import Recomputed
from .saved import LEAST_BYTES, Untouched, swappable, used_handle
from .segments import Segments, place_of
from .storages import as_usual, inference, untyped
from .telling import warn


class Swap(Book):
    """A budget for this process, and what was learned under it. Use it by `with`, as often as you
    like, around all of a training or around each step of it."""

    def __init__(self, budget=None, policy="swap", tiers=None, lazy=False, recompute=False, plan_file=None,
                 states=None, device=None):
        itself = device if hasattr(device, "takes") else None  # no name of it
        policy, tiers, plan_file, device = core.checked(policy, tiers, plan_file, None if itself else device)
        super().__init__(used_handle)
        self._settings = budget, policy, tiers, plan_file
        self._device = itself if device is None else devices.checked(device)
        self._core = self._news = None
        self._elsewhere = self._asked = False
        self._forked = False
        self._places = Places()
        self._lock = threading.RLock()
        self._entered = threading.local()
        self._inside = 0
        self._backward = self._end_awaited = False
        self._told = False
        self._reports = 0
        self._segments = Segments(self._segment) if recompute or policy == "checkpoint" else None
        leave = policy == "swap" if states is None else states
        self._states = States(self, everywhere=states is not None) if leave else None
        if not lazy:
            self._begin_core()
        processes.know(self)

    def __deepcopy__(self, _):
        return self  # a copy of a model that has it swaps in the same process, by the same budget

    def __reduce__(self):
        raise TypeError("tierpilot.swap: it is of this process: it cannot be saved, so keep it out of the model")

    # With the hooks

    def __enter__(self):
        hooks = saved_tensors_hooks(self._save, _unpack)
        hooks.__enter__()
        if not hasattr(self._entered, "hooks"):
            self._entered.hooks = []
        self._entered.hooks.append(hooks)
        if self._segments:
            segments.enter(self._segments)
        if self._states:
            steps.take_charge(self._states)
            steps.watch()
        with self._lock:
            self._settle()
            self._inside += 1
            self._places.watch()
        return self

    def __exit__(self, *error):
        if not getattr(self._entered, "hooks", None):
            raise RuntimeError("tierpilot.swap: this thread has not entered it")
        try:  # each, also where a signal's handler raises
            self._entered.hooks.pop().__exit__(*error)
        finally:
            try:
                if self._segments:
                    segments.leave()
            finally:
                with self._lock:
                    self._inside -= 1
                    if self._inside == 0:
                        self._places.unwatch()
                    self._finish(self._unfinished)
        return False

    def step(self, work, tries=2):
        """What `work()` returns, run within this: a step that can be repeated, from clearing the
        gradients to the backward pass. Where memory runs out it is run again with everything away,
        random numbers as before; running means of normalisations count it twice then."""
        if tries < 1:
            raise ValueError(f"tierpilot.swap: tries {tries!r}: at least 1 is needed")
        random = random_states()
        for attempt in range(1, tries + 1):
            try:
                with self:
                    return work()
            except (RuntimeError, MemoryError) as error:
                if attempt == tries or not self._no_memory(error):
                    raise
                self._failed()  # while what was held is, which the frames do
                traceback.clear_frames(error.__traceback__)
            warn("no memory: the step runs again, with everything away")
            gc.collect()
            set_random_states(random)

    def _pack(self, tensor):
        if traced():
            return untraced(Untouched, tensor)
        maker, base = tensor.grad_fn, tensor._base
        if self._forked or not swappable(tensor, maker, base):
            return Untouched(tensor)
        try:
            storage = untyped(tensor)
        except NotImplementedError:  # it has none
            return Untouched(tensor)
        size = storage.nbytes()
        if size < LEAST_BYTES:
            return Untouched(tensor)
        with self._lock:
            if self._ended or self._over is not None:
                self._settle()
            if not self._told:
                self._open(tensor)
            if not self._takes(tensor):
                self._warn_of(tensor)
                return Untouched(tensor)
            handle = self._saved(tensor, tensor if base is None else base, maker, storage, size)
            if self._news.value & LEFT_NEWS:
                self._reap()
        return handle

    def _segment(self, name, modules, work, inputs, named):
        """One segment's forward pass: as it is, or to be computed again."""
        if self._forked:
            return work(*inputs, **named)
        state = BlockState(modules, (inputs, named))
        tensors = state.tensors
        with self._lock:
            place = number_of(place_of(name, modules, tensors), 8)
            again = self._open().segment_begin(place, sum(t.numel() * t.element_size() for t in tensors))
        seen, never = self._segments.seen, self._segments.never
        able, possible, ended = state.why is None and place not in never, False, False
        if able and place not in seen:
            seen.add(place)
            state.look_closely()
        try:
            if again and able:
                run = Recomputed(work, modules, (inputs, named), self._pack, Untouched, state)
                made = run.forward(*inputs, **named)
                possible = run.possible
            else:
                made = work(*inputs, **named)
                possible = able and state.unchanged()
                if possible:
                    self._segments.keeps_nothing_of(place, tensors)
            if able and not possible:
                never.add(place)
            ended = True
        finally:
            with self._lock:  # an exception says nothing of the next time
                self._core.segment_end(possible if ended else able)
        return made

    def _make_room(self, size):
        """Waits for what leaves, as long as there is too little room."""
        self._tell_memory()
        while not self._core.room(size, True) and self._reap():
            self._tell_memory()

    def _get(self, handle):
        if inference():
            return self._get_as_usual(handle)
        stored = handle.stored
        with self._lock:
            if self._forked:
                raise RuntimeError("tierpilot.swap: this process was forked: run backward where forward ran")
            if self._ended or self._over is not None:
                self._settle()
            if not self._end_awaited:
                self._begin_backward()
            (handle.counter or stored).check()
            if stored.number:
                self._bring(stored)
            return self._given(handle)

    _get_as_usual = as_usual(_get)

    def _returned(self, handle, where):
        """For the hooks in C++, which have asked for it."""
        self._await(handle.stored, where)
        return self._given(handle)

    def _given(self, handle):
        tensor, stored = handle.tensor(), handle.stored
        if self._streams and stored.stream != self._current_stream():
            self._device.used_here(tensor)
        self._used(handle)
        if self._news.value & LEFT_NEWS:
            self._reap()
        return tensor

    def _bring(self, stored):
        if self._news.value & MEMORY_NEWS:
            self._tell_memory()
        self._await(stored, self._core.use(stored.number))

    def _await(self, stored, where):
        if where == core.AWAY:
            self._fetch(stored)
        if self._news.value & AHEAD_NEWS:
            self._prefetch()
        if where in (core.AWAY, core.COMING):
            where = self._core.wait(stored.number)
        if where != core.HERE or stored.storage is None:
            raise RuntimeError("tierpilot.swap: a saved tensor cannot be read back from its memory tier")

    def _begin_backward(self):
        self._end_awaited = True
        if self._segments:
            self._segments.look_again()
        try:
            # The last ones that it uses end behind the last hook.
            torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)
        except RuntimeError:  # no backward pass asks
            pass
        if not self._backward:
            self._backward = True
            self._tell_held()
            self._warn()
            self._report()

    def _end_backward(self):
        self._end_awaited = False
        self._see_to_ended()

    def _used(self, handle):
        """Another backward pass over a graph that is retained gets it from the pool again."""
        stored = handle.stored
        if type(handle) is not self.used_handle:
            handle.__class__ = self.used_handle
            stored.unused -= 1
        if stored.unused == 0 and stored.layout is not None:
            self._core.release(stored.number)
            stored.storage = None

    def _fetch(self, stored):
        storage = self._device.new_storage(stored.size)
        stored.storage = storage
        stored.stream = self._current_stream()
        self._core.fetch(stored.number, storage.data_ptr(), stored.stream)

    def _prefetch(self):
        try:
            for number in self._core.ahead():
                stored = self._by_number.get(number)
                if stored is not None and stored.storage is None:  # else it was collected meanwhile
                    self._fetch(stored)
        except RuntimeError:  # no memory for it now: it comes when it is asked for
            self._failed()

    # Of devices

    def _current_stream(self):
        return self._device.stream() if self._streams else 0

    def _failed(self):
        with self._lock:
            self._settle()
            self._open()
            self._tell_memory()
            self._core.failed()

    def _tell_memory(self):
        if self._device.memory:
            held, peak = self._device.memory()
            self._core.memory(held, peak if self._asked else held)  # the most before is none of the first step's
            self._asked = True

    def _warn_of(self, tensor):
        if not self._elsewhere and tensor.is_cuda:
            self._elsewhere = True
            warn(
                f"tensors on {tensor.device} stay where they are, as the budget is of {self._device.name}: "
                f"say device='{tensor.device}'"
            )

    def _no_memory(self, error):
        return isinstance(error, MemoryError) or self._core is not None and self._device.out_of_memory(error)

    # What it says

    @property
    def opened(self):
        """Whether anything has been saved so far, or was not to be waited for."""
        return self._core is not None and not self._forked

    @property
    def on_processor(self):
        """Whether what it holds lies in the processor's memory, as far as that is known by now."""
        return self._core is not None and self._device.name == "cpu"

    def statistics(self):
        """Counts since it was opened, a dict; tierpilot-swap(1) has the names."""
        return self._describe("statistics")

    def tiers(self):
        """The memory tiers as measured, fast to slow."""
        return self._describe("tiers")

    def last_step(self):
        """The last whole training step, storage by storage."""
        return self._describe("step")

    def _describe(self, what):
        self._see_to_ended()
        return self._open().describe(what)

    def keep(self):
        """Writes what was learned to the plan file, as the end of the program does; OSError where it
        cannot be written."""
        if self._core is not None and not self._forked:
            self._core.keep()

    def begin(self):
        """A step of the training is over, where that could not be seen by what is saved."""
        with self._lock:
            self._settle()
            if self.opened:
                self._tell_memory()
                self._core.begin()

    def _begin_core(self, tensor=None):
        if self._device is None:
            self._device = devices.found(tensor)
        elif isinstance(self._device, str):
            self._device = devices.named(self._device)
        begun = core.Core(*self._settings, device=self._device.name)
        self._news = begun.news
        self._streams = self._device.stream is not None
        self._takes = self._device.takes
        self._use_core(*begun.addresses(), begun.waits)
        self._core = begun  # last, as an interrupt may come before

    def _open(self, tensor=None):
        with self._lock:  # several threads may come first
            if self._core is None:
                self._begin_core(tensor)
        if not self._told:
            self._told = True
            self._warn()
            tierpilot.job().measure(processes.weakly(self._measures))
        return self._core

    def _measures(self):
        """What Tierpilot shows of it where it runs the program as a task."""
        said = {} if self._forked else self.statistics()
        names = ("bytes_out", "bytes_in", "last_stall_ns", "last_peak_bytes", "refused", "late")
        return {"swap_" + name: said[name] for name in names if name in said}

    def _report(self):
        """Once a step, as long as the program says nothing itself."""
        job = tierpilot.job()
        if job.connected and job.reports == self._reports:
            self._reports += 1
            job.report(iteration=self.statistics()["steps"])

    def _warn(self):
        for text in self._core.warnings():
            warn(text)

    def _after_fork(self):
        self._lock = threading.RLock()
        self._forked = True


_unpack = operator.methodcaller("get")
