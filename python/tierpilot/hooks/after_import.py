"""Changes a module once somebody imports it."""

import importlib.abc
import importlib.util
import sys


def after_import(name, then):
    """Calls then(module), now if it is imported already."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, then))


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with the module once it has been imported."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_tell(module):
            load(module)
            self._then(module)

        spec.loader.exec_module = load_and_tell
        return spec
