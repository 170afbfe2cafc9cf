"""libtierpilot-swap by its C interface, tierpilot_swap.h."""

import ctypes
import functools
import json
import operator
import os
import struct
import sys
import warnings

HERE, AWAY, COMING, LOST = range(4)
CONVOLUTION_INPUT, STATE, UNFINISHED = 1, 2, 4
LEFT_NEWS, AHEAD_NEWS, MEMORY_NEWS, STATES_NEWS = 1, 2, 4, 8
GIVEN = 0  # a budget: this process's part of that in TIERPILOT_SWAP_BUDGET
_MOST_IDS = 64
_LEAST_SAID = 64 << 10  # the least tensor that may leave; whoever says less means another unit


class _Settings(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("budget_bytes", ctypes.c_int64),
        ("tiers", ctypes.c_char_p),
        ("policy", ctypes.c_char_p),
        ("out_threads", ctypes.c_uint32),
        ("in_threads", ctypes.c_uint32),
        ("plan_file", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
    ]


# tierpilot_swap_storage: place, kind, flags, data, bytes, stream. Packing it costs less than six fields of a Structure.
_STORAGE = struct.Struct("=QIIQqQ")
_write_storage = _STORAGE.pack_into
# They wait for nothing: keeping the interpreter's lock costs less than giving it up and taking it again.
_QUICK = ("save", "finished", "use", "ahead", "drop")


def _library():
    """TIERPILOT_SWAP_LIBRARY, else what the dynamic linker finds."""
    path = os.environ.get("TIERPILOT_SWAP_LIBRARY") or "libtierpilot-swap.so.0"
    try:
        library, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
    except OSError as error:
        raise ImportError(
            f"libtierpilot-swap cannot be loaded: {error}; "
            "install Tierpilot or set TIERPILOT_SWAP_LIBRARY to its path"
        ) from None
    pointer, number, ids = ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)
    size = ctypes.c_size_t
    for name, result, arguments in (
        ("open", pointer, [ctypes.POINTER(_Settings), ctypes.c_char_p, size]),
        ("keep", ctypes.c_int, [pointer, ctypes.c_char_p, size]),
        ("close", None, [pointer]),
        ("begin", None, [pointer]),
        ("news", ctypes.c_void_p, [pointer]),
        ("memory", None, [pointer, ctypes.c_int64, ctypes.c_int64]),
        ("save", number, [pointer, pointer]),
        ("finished", None, [pointer]),
        ("left", size, [pointer, ids, size]),
        ("use", ctypes.c_int, [pointer, number]),
        ("ahead", size, [pointer, ids, size]),
        ("fetch", None, [pointer, number, pointer, ctypes.c_uint64]),
        ("wait", ctypes.c_int, [pointer, number]),
        ("release", None, [pointer, number]),
        ("held", None, [pointer, number]),
        ("room", ctypes.c_int, [pointer, ctypes.c_int64, ctypes.c_int]),
        ("drop", ctypes.c_int, [pointer, number]),
        ("segment_begin", ctypes.c_int, [pointer, ctypes.c_uint64, ctypes.c_int64]),
        ("segment_end", None, [pointer, ctypes.c_int]),
        ("failed", None, [pointer]),
        ("describe", size, [pointer, ctypes.c_char_p, ctypes.c_char_p, size]),
        ("warning", size, [pointer, ctypes.c_char_p, size]),
        ("bytes", ctypes.c_int64, [ctypes.c_char_p]),
    ):
        function = getattr(quick if name in _QUICK else library, "tierpilot_swap_" + name)
        function.restype, function.argtypes = result, arguments
    return library, quick


def budget_bytes(budget, name="budget"):
    """Of a number of bytes or a size in words; `name` is whose, for the error."""
    said = budget
    if isinstance(budget, str):
        budget = -1 if "\0" in budget else _library()[0].tierpilot_swap_bytes(budget.encode(errors="replace"))
        if budget < 0:
            raise ValueError(f"tierpilot.swap: {name} {said!r}: a budget is a size, such as '4GiB'")
        if 0 < budget < _LEAST_SAID:
            raise ValueError(f"tierpilot.swap: {name} {said!r}: a budget of {budget} bytes holds no tensor: say a unit, such as '4GiB'")
    elif isinstance(budget, float) and budget.is_integer():
        budget = int(budget)
    elif isinstance(budget, float):
        raise ValueError(f"tierpilot.swap: {name} {said!r}: a budget is a whole number of bytes, or a size, such as '4GiB'")
    elif isinstance(budget, bool) or not hasattr(budget, "__index__"):
        raise TypeError(
            f"tierpilot.swap: {name} {said!r}: a budget is a size, such as '4GiB', or a number of bytes, "
            f"not a {type(budget).__name__}"
        )
    budget = operator.index(budget)
    if not 0 < budget < 1 << 63:
        raise ValueError(f"tierpilot.swap: {name} {said!r}: a budget has to be above 0 and below 8 EiB")
    return budget


def _words(name, said, like):
    if not isinstance(said, str):
        raise TypeError(f"tierpilot.swap: {name} {said!r}: say it as a str, such as {like!r}, not as a {type(said).__name__}")
    if "\0" in said:
        raise ValueError(f"tierpilot.swap: {name} {said!r}: it has a character 0 in it")
    return said


def checked(policy, tiers, plan_file, device):
    """The same as strings, or None; else an error that names which is wrong."""
    if type(device).__name__ == "device":  # PyTorch's
        device = str(device)
    try:
        plan_file = os.fsdecode(plan_file) if plan_file else None
    except TypeError:
        raise TypeError(f"tierpilot.swap: plan_file {plan_file!r}: say it as a str or a path") from None
    return (
        _words("policy", policy, "swap"),
        None if tiers is None else _words("tiers", tiers, "node1=2GiB,dir:/srv/slow=16GiB"),
        plan_file and _words("plan_file", plan_file, "plans"),
        None if device is None else _words("device", device, "cuda"),
    )


def yes_or_no(name, said):
    """A text would always be a yes."""
    if isinstance(said, (str, bytes)):
        raise TypeError(f"tierpilot.swap: {name} {said!r}: say True or False, not as a {type(said).__name__}")
    return bool(said)


class Core:
    """One pool with its threads and what it has learned. `close` ends it, or that nobody has it any more."""

    def __init__(self, budget=None, policy="swap", tiers=None, plan_file=None, device="cpu", out_threads=0, in_threads=0):
        self._handle = ctypes.c_void_p()
        self._library, quick = library, _ = _library()
        budget = GIVEN if budget is None else budget_bytes(budget)
        policy, tiers, plan_file, device = checked(policy, tiers, plan_file, device)
        settings = _Settings(
            size=ctypes.sizeof(_Settings),
            budget_bytes=budget,
            tiers=os.fsencode(tiers) if tiers else None,
            policy=policy.encode(errors="replace"),
            out_threads=out_threads,
            in_threads=in_threads,
            plan_file=os.fsencode(plan_file) if plan_file else None,
            device=device.encode(errors="replace"),
        )
        error = ctypes.create_string_buffer(1024)
        handle = library.tierpilot_swap_open(ctypes.byref(settings), error, len(error))
        if not handle:
            raise ValueError(error.value.decode(errors="replace"))
        self._kept_by = os.getpid() if plan_file else None
        self._handle.value = handle
        # What calls have something to do: its `value` is bits of _NEWS.
        self.news = ctypes.c_uint32.from_address(library.tierpilot_swap_news(self._handle))
        self._storage = ctypes.create_string_buffer(_STORAGE.size)
        self._left_numbers, self._ahead_numbers = ((ctypes.c_uint32 * _MOST_IDS)() for _ in range(2))
        self.waits = device != "cpu"
        self.named = []  # numbers that `left` has named, until whoever asked has let go of each
        for name in ("save", "use", "fetch", "wait", "release", "held", "drop", "left", "ahead", "finished"):
            # With a GPU they wait for it now and then.
            of = library if name not in _QUICK or self.waits else quick
            setattr(self, "_" + name, getattr(of, "tierpilot_swap_" + name))
        self.budget_bytes = budget or self.describe("statistics")["budget_bytes"]
        self.use, self.drop, self.finished = (
            functools.partial(of, self._handle) for of in (self._use, self._drop, self._finished)
        )
        # What a loop takes it has, where signal handlers run behind calls: they may raise something.
        self._saves = iter(functools.partial(self._save, self._handle, self._storage), None)
        self._lefts = iter(functools.partial(self._left, self._handle, self._left_numbers, _MOST_IDS), None)

    def addresses(self):
        """Of its handle, its news, and the functions that the hooks call."""
        functions = (self._save, self._use, self._drop, self._finished)
        found = (ctypes.cast(function, ctypes.c_void_p).value for function in functions)
        return ctypes.addressof(self._handle), ctypes.addressof(self.news), *found

    def begin(self):
        self._library.tierpilot_swap_begin(self._handle)

    def memory(self, held, peak):
        self._library.tierpilot_swap_memory(self._handle, held, peak)

    def saving(self, place, kind, flags, data, size, stream=0):
        """For a loop that takes one number, which saves. Not from two threads at once: callers hold a lock."""
        _write_storage(self._storage, 0, place, kind, flags, data, size, stream)
        return self._saves

    def save(self, *storage):
        for number in self.saving(*storage):
            return number

    def fetch(self, number, data, stream=0):
        self._fetch(self._handle, number, data, stream)

    def wait(self, number):
        return self._wait(self._handle, number)

    def release(self, number):
        self._release(self._handle, number)

    def held(self, number):
        self._held(self._handle, number)

    def room(self, size, wait):
        return self._library.tierpilot_swap_room(self._handle, size, wait) == 1

    def dropping(self, number):
        """For a loop of one round, which drops and has what `drop` returns."""
        return map(self._drop, (self._handle,), (number,))

    def segment_begin(self, place, input_bytes):
        return self._library.tierpilot_swap_segment_begin(self._handle, place, input_bytes) == 1

    def segment_end(self, possible):
        self._library.tierpilot_swap_segment_end(self._handle, possible)

    def failed(self):
        self._library.tierpilot_swap_failed(self._handle)

    def left(self):
        """Whether there are numbers in `named` now. Likewise."""
        for count in self._lefts:
            self.named += self._left_numbers[:count]
            break
        return len(self.named) > 0

    def ahead(self):
        """Likewise."""
        count = self._ahead(self._handle, self._ahead_numbers, _MOST_IDS)
        return self._ahead_numbers[:count] if count else ()

    def describe(self, what):
        size = self._library.tierpilot_swap_describe(self._handle, what.encode(), None, 0)
        while True:
            text = ctypes.create_string_buffer(size + 1)
            got = self._library.tierpilot_swap_describe(self._handle, what.encode(), text, size + 1)
            if got <= size:
                return json.loads(text.value or "{}")
            size = got

    def warnings(self):
        """What the program should be told, each text once."""
        text = ctypes.create_string_buffer(1024)
        while self._library.tierpilot_swap_warning(self._handle, text, len(text)):
            yield text.value.decode(errors="replace")

    def keep(self):
        error = ctypes.create_string_buffer(1024)
        if self._library.tierpilot_swap_keep(self._handle, error, len(error)) != 0:
            raise OSError(error.value.decode(errors="replace") or "plans cannot be kept")

    def close(self):
        """Calls that come later do nothing; `news` may not be read any more."""
        handle, self._handle.value = self._handle.value, None
        if handle:
            self._library.tierpilot_swap_close(handle)

    def __del__(self, ending=sys.is_finalizing):
        """Of a Swap that nobody has any more. What it saved is still in memory, of which copies may be under way: it
        goes after this, and may say that here."""
        # What is there at the end is kept by then, and modules may be gone.
        if self._handle and not ending() and self._kept_by == os.getpid():
            try:
                self.keep()
            except OSError as error:
                warnings.warn(f"tierpilot.swap: {error}", RuntimeWarning, 2)
        self.close()
