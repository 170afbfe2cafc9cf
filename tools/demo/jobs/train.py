"""The training job of `quickstart jobs` that is a script: train.py STEPS. Prints its last loss.

Data-parallel over gloo: a multi-layer perceptron on data that it makes itself. Rank 0 saves model,
optimizer and step every second, and when it is asked to; what begins again goes on from there.
Batches follow from the step alone, so that a job that failed ends with the loss of one that did not.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tierpilot

SAMPLES = 1200
BATCH = 120  # of all ranks together: as many for each of one, two or three
STEP_S = 0.04  # at least, so that a few cores can carry all ranks
SAVE_EVERY_S = 1


def problem():
    """Inputs, targets and model; the same on every rank and in every run."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, 20, generator=random)
    y = torch.sin(x @ torch.randn(20, generator=random)).unsqueeze(1)
    return x, y, nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))


def main():
    steps = int(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y, model = problem()
    loss_of = nn.functional.mse_loss
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    job = tierpilot.job()
    start = 0
    if job.restored:
        state = torch.load(job.restored)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
    parallel = DistributedDataParallel(model)
    saved = time.monotonic()
    for step in range(start, steps):
        begin = time.monotonic()
        chosen = torch.randint(SAMPLES, (BATCH,), generator=torch.Generator().manual_seed(step))
        mine = chosen[rank::world]
        optimizer.zero_grad()
        loss = loss_of(parallel(x[mine]), y[mine])
        loss.backward()
        optimizer.step()
        job.report(iteration=step + 1, iterations=steps, loss=loss.item())
        if rank == 0 and (time.monotonic() - saved > SAVE_EVERY_S or job.should_checkpoint()):
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step + 1,
                },
                "state.pt",
            )
            job.checkpoint("state.pt", iteration=step + 1)
            saved = time.monotonic()
        time.sleep(max(0, STEP_S - (time.monotonic() - begin)))
    if rank == 0:
        with torch.no_grad():
            print("loss", loss_of(model(x), y).item(), flush=True)
    dist.barrier()


main()
