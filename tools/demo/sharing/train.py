"""One training job of `quickstart sharing`: train.py NAME ITERATIONS, or train.py --cards SCALE.

Trains a small network on data that it makes itself, its input pipeline of a limited rate, reports
each iteration and saves its state every few seconds and when it is asked to. With --cards: the
model cards of all jobs, a JSON object by name; nothing is trained.
"""

import json
import sys
import time

import torch

import tierpilot
from tierpilot.collect.measure import OPTIMIZERS, draw
from tierpilot.collect.pipelines import Pipeline

SAVE_EVERY_S = 4
# By name: the architecture, what its sizes are drawn from, iterations, and the part of an iteration
# that it waits for its batch, in seconds.
JOBS = {
    "gru": ("gru", 2, 150, 0.05),
    "mixer": ("mixer", 2, 280, 0.02),
    "unet": ("unet", 2, 160, 0.05),
    "mobilenet": ("mobilenet", 5, 400, 0.0),
    "encoder": ("encoder", 2, 150, 0.06),
    "resnet": ("resnet", 5, 160, 0.035),
    "lstm": ("lstm", 5, 120, 0.07),
    "translator": ("translator", 5, 160, 0.035),
    "mlp": ("mlp", 5, 120, 0.075),
    "highway": ("highway", 2, 300, 0.02),
}


def card_of(name, scale):
    architecture, seed, iterations, load_s = JOBS[name]
    _, card, _ = draw(architecture, seed)
    card["job"].update(
        iterations=max(10, int(iterations * scale)), load_s=load_s, loads_ahead=False, threads=1
    )
    return card


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
    architecture, seed, _, load_s = JOBS[name]
    torch.set_num_threads(1)
    task, card, _ = draw(architecture, seed)
    pipeline = Pipeline(load_s, 0, False)
    optimizer = OPTIMIZERS[card["job"]["optimizer"]](task.model.parameters())
    job = tierpilot.job()
    state = State(job, task.model, optimizer)
    while state.iteration < iterations and not job.should_stop():
        pipeline.batch()
        optimizer.zero_grad()
        loss = task.loss(task.model(*task.inputs))
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
