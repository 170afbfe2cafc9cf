"""The jobs of gpu_shares.py: `KIND REPORT STOP`, which append what they do to REPORT, a JSON object a line, until STOP is there.

    compute  matrix products in even seconds, training steps in odd ones
    greedy   takes 3 GiB
    crash    computes, and reads what is out of bounds when STOP is there, the first time that it is tried
"""
import json
import os
import sys
import time

ATTEMPT = int(os.environ.get("TIERPILOT_ATTEMPT", "0"))


class Report:
    def __init__(self, path):
        self.path = path

    def say(self, **line):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "attempt": ATTEMPT}) + "\n")


def whole_seconds(report, stop, works):
    """A second of each work in turn, all jobs the same at a time, until it is to stop."""
    kinds = sorted(works)
    while not os.path.exists(stop):
        begin, count = time.time(), 0
        kind = kinds[int(begin) % len(kinds)]
        while int(time.time()) == int(begin):
            works[kind]()
            count += 1
        report.say(kind=kind, begin=begin, end=time.time(), count=count)


def works_on(torch, device):
    a, b = (torch.randn(4096, 4096, device=device) for _ in range(2))
    model = torch.nn.Sequential(*(layer for _ in range(4) for layer in (torch.nn.Linear(2048, 2048), torch.nn.ReLU()))).to(device)
    optimiser, x = torch.optim.SGD(model.parameters(), lr=1e-4), torch.randn(4096, 2048, device=device)

    def product():
        torch.mm(a, b)
        torch.cuda.synchronize()

    def step():
        optimiser.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimiser.step()
        torch.cuda.synchronize()

    for _ in range(3):  # the first calls load what they need
        product(), step()
    return {"products": product, "steps": step}


def main(kind, path, stop):
    import torch

    report, device = Report(path), torch.device("cuda:0")
    properties, (free, total) = torch.cuda.get_device_properties(device), torch.cuda.mem_get_info()
    limits = {name: value for name, value in os.environ.items() if name.startswith("CUDA_MPS") and "DIRECTORY" not in name}
    report.say(pid=os.getpid(), device={"name": properties.name, "multiprocessors": properties.multi_processor_count,
                                        "free_bytes": free, "total_bytes": total, **limits})
    if kind == "greedy":
        taken = []
        try:
            for _ in range(12):
                taken.append(torch.ones(64 << 20, device=device))  # of 4 bytes each
                torch.cuda.synchronize()
                time.sleep(0.1)
        except RuntimeError as error:
            report.say(refused=str(error)[:300], had_bytes=len(taken) << 28)
            return 7
        report.say(got_bytes=len(taken) << 28)
        time.sleep(2)
        return 0
    works = works_on(torch, device)
    whole_seconds(report, stop, works)
    if kind == "crash" and ATTEMPT == 1:
        try:
            print(torch.zeros(8, device=device)[torch.full((1,), 1 << 40, device=device)].sum().item())
        except (RuntimeError, IndexError) as error:
            report.say(crashed=str(error)[:300])
            return 9
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
