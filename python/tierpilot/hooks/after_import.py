"""Changes a module once somebody imports it."""

import importlib.abc
import importlib.util
import sys
import threading


def after_import(name, then):
    """Calls then(module), now if it is imported already."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, then))


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with the module once it has been imported. Programs may ask before whether it is there."""

    def __init__(self, name, then):
        self._name = name
        self._then = then
        self._asks = threading.local()  # the other finders, in this thread

    def find_spec(self, name, path=None, target=None):
        if name != self._name or getattr(self._asks, "now", False):
            return None
        self._asks.now = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asks.now = False
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_tell(module):
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then(module)

        spec.loader.exec_module = load_and_tell
        return spec
