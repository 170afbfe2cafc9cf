"""Trainings that are drawn for a core, with batches of a GPU's size: else it would wait for its host in
nearly all of them."""

import random

from ...cards import describe
from ..measure import build, draw, job_of

_SMALL = 0.3  # of the trainings are as on a core
MOST_TIMES = 4096
# Of a forward pass and its batch, so that an iteration takes a tenth of a second at most.
_MOST = {"flops": 4e11, "activation_bytes": 2 << 30, "traffic_bytes": 8 << 30, "input_elements": 64 << 20}
_READ_BYTES_PER_S = 2e9  # of a file that is in the page cache


class Sized:
    """A batch is at most so many times a core's. `build()` makes the task again, in whichever process."""

    def __init__(self, architecture, seed, most_times=MOST_TIMES):
        self._what = architecture, seed
        self._attempt, self.card, self.reads = draw(architecture, seed, on_gpu=True)
        self.times = 1
        task, _ = build(architecture, seed, self._attempt)
        if task.grows:
            self.times = _times(random.Random(f"{architecture} {seed} times"), self.card, most_times)
        if self.times > 1:
            task.grow(self.times)
            # On shapes alone PyTorch takes recurrent layers apart in another way.
            self.card = {**_described(task), "launches": self.card["launches"]}
            self.reads, self.card["job"] = job_of(self.card, random.Random(f"{architecture} {seed} job"), on_gpu=True)
        # Else its batches took longer than their card says.
        self.reads = self.reads and 4 * self.card["input_elements"] <= _READ_BYTES_PER_S * self.card["job"]["load_s"]

    def build(self):
        task, _ = build(*self._what, self._attempt)
        if self.times > 1:
            task.grow(self.times)
        return task


def _times(random_, card, most_times):
    most = min(most_times, *(limit / max(1, card[name]) for name, limit in _MOST.items()))
    if random_.random() < _SMALL or most < 2:
        return 1
    return int(most ** random_.uniform(0.5, 1))


def _described(task):
    """By shapes alone: to compute such a batch on a core takes seconds."""
    try:
        shapes = task.on_meta()
        return describe(shapes.model, shapes.inputs, task.batch)
    except (NotImplementedError, RuntimeError):  # an operator that older versions of PyTorch have not there
        return describe(task.model, task.inputs, task.batch)
