"""One training job of `quickstart sharing`: train.py NAME ITERATIONS, or train.py --cards SCALE.

Trains a small network on data that it makes itself, its input pipeline of a limited rate, reports
each iteration and saves its state every few seconds and when it is asked to. With --cards: the
model cards of all jobs, a JSON object by name; nothing is trained.
"""

import json
import random
import sys
import time

import torch

import tierpilot
from tierpilot.collect.architectures import ARCHITECTURES
from tierpilot.collect.measure import OPTIMIZERS
from tierpilot.collect.pipelines import Pipeline

SAVE_EVERY_S = 4
# By name, an architecture: what its sizes are drawn from, its optimizer, iterations, and the seconds
# of an iteration that it waits for its batch.
JOBS = {
    "gru": (4, "RMSprop", 200, 0.035),
    "mixer": (7, "Adam", 280, 0.02),
    "unet": (6, "Adam", 250, 0.03),
    "mobilenet": (6, "SGD", 600, 0.0),
    "encoder": (6, "AdamW", 150, 0.05),
    "resnet": (4, "SGD", 270, 0.02),
    "lstm": (4, "Adam", 150, 0.05),
    "translator": (6, "SGD+momentum", 300, 0.02),
    "mlp": (6, "RMSprop", 290, 0.03),
    "highway": (6, "SGD", 200, 0.03),
}


def task_of(name):
    seed = JOBS[name][0]
    torch.manual_seed(seed)
    return ARCHITECTURES[name](random.Random(seed))


def card_of(name, scale):
    _, optimizer, iterations, load_s = JOBS[name]
    task = task_of(name)
    job = {"optimizer": optimizer, "threads": 1, "load_s": load_s, "loads_ahead": False}
    iterations = max(10, int(iterations * scale))
    return tierpilot.describe(task.model, task.inputs, task.batch, iterations, job)


class State:
    """What a try that follows goes on from."""

    def __init__(self, job, model, optimizer):
        self._job, self._model, self._optimizer = job, model, optimizer
        self._saved_at = time.monotonic()
        self.iteration = 0
        if job.restored:
            saved = torch.load(job.restored)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            self.iteration = saved["iteration"]

    def save_if_due(self):
        asked = self._job.should_checkpoint()
        if not asked and time.monotonic() - self._saved_at < SAVE_EVERY_S:
            return
        torch.save(
            {
                "model": self._model.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "iteration": self.iteration,
            },
            "state.pt",
        )
        self._job.checkpoint("state.pt", self.iteration)
        self._saved_at = time.monotonic()


def train(name, iterations):
    _, optimizer_name, _, load_s = JOBS[name]
    torch.set_num_threads(1)
    task = task_of(name)
    pipeline = Pipeline(load_s)
    optimizer = OPTIMIZERS[optimizer_name](task.model.parameters())
    job = tierpilot.job()
    state = State(job, task.model, optimizer)
    while state.iteration < iterations and not job.should_stop():
        pipeline.batch()
        optimizer.zero_grad()
        loss = task.loss(task.model(*task.inputs), task.wanted)
        loss.backward()
        optimizer.step()
        state.iteration += 1
        job.report(state.iteration, loss=loss.item(), iterations=iterations)
        if state.iteration < iterations:
            state.save_if_due()
    print(f"{name}: {state.iteration} iterations, loss {loss.item():.4g}")


def main():
    if sys.argv[1] == "--cards":
        torch.set_num_threads(1)
        print(json.dumps({name: card_of(name, float(sys.argv[2])) for name in JOBS}))
    else:
        train(sys.argv[1], int(sys.argv[2]))


if __name__ == "__main__":
    main()
