"""Hooks for saved tensors that the program sets itself within ours, as its own checkpointing does: what is saved there
is theirs to keep, in the forward pass and where they compute it again."""

import threading

from torch.autograd.graph import saved_tensors_hooks


class _Here(threading.local):
    depth = 0


_here = _Here()


def depth():
    """How many of this thread stand within each other, as a difference to what it was."""
    return _here.depth


class Watch:
    """Counts them from `begin` to `end`."""

    def begin(self):
        self._enter, self._exit = enter, leave = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__

        def entered(hooks):
            made = enter(hooks)
            _here.depth += 1
            return made

        def left(hooks, *error):
            _here.depth -= 1
            return leave(hooks, *error)

        saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = entered, left

    def end(self):
        saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = self._enter, self._exit
