"""What the hooks read and write at each call, and the ways that they mostly go: in C++ (swap/python), where this Python can
load that. Classes here and in session.py are made of it, and see to all that is unusual.

TIERPILOT_SWAP_HOOKS=python leaves all to Python, which does the same.
"""

import importlib.machinery
import importlib.util
import os
import sys

_NAME = "tierpilot_swap_hooks"


def _load():
    """None: Python does it all."""
    if os.environ.get("TIERPILOT_SWAP_HOOKS") == "python" or sys.version_info < (3, 9) or "t" in sys.abiflags:
        return None  # objects of a Python without its lock ("t") are others
    library = os.environ.get("TIERPILOT_SWAP_LIBRARY")
    for folder in (os.path.dirname(__file__), library and os.path.join(os.path.dirname(library), "python")):
        path = folder and os.path.join(folder, _NAME + ".abi3.so")
        if path and os.path.exists(path):
            loader = importlib.machinery.ExtensionFileLoader(_NAME, path)
            try:
                module = importlib.util.module_from_spec(importlib.util.spec_from_loader(_NAME, loader))
                loader.exec_module(module)
            except ImportError:  # of another kind of Python
                continue
            return module
    return None


_module = _load()


def know(**what):
    """What it needs to know of PyTorch and of classes."""
    if _module:
        _module.know(**what)


if _module:
    OwnerFields = _module.OwnerFields
    StoredFields = _module.StoredFields
    HandleFields = _module.HandleFields
    UntouchedFields = _module.UntouchedFields
else:

    class OwnerFields:
        """Of a Swap."""

        def _save(self, tensor):
            return self._pack(tensor)

        def _use_core(self, *_):
            pass

    class StoredFields:
        # Most of what is set later never is: a save costs less without.
        number = 0
        address = 0
        stream = 0
        weak = layout = None
        handles = 0
        unused = 0

    class HandleFields:
        __slots__ = ("owner", "stored", "layout", "counter")

        def get(self):
            return self.owner._get(self)

    class UntouchedFields:
        __slots__ = ("tensor", "version")
