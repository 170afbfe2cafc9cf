"""One training of gpu_nets.py, in a process of its own: gpu_trainings.py SETTINGS, a JSON object. Prints the largest batch that fits, or
how fast it is beside plain training without a bound, as JSON."""
import contextlib
import fcntl
import gc
import json
import math
import pathlib
import statistics
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[3] / "tools/demo/swap"), str(HERE.parent)]
TRIES = 3  # steps after which a batch is said to fit
WARM = 14  # steps of a policy that nothing is judged by: the first are measured closely, and ways are tried in the others
LEG_S = 3  # seconds that steps of one kind take at most, before those of the other kind have their turn


def checkpointed(torch, model):
    """sqrt(n) segments, each computed again from its input by PyTorch's own checkpoint; none begins with what changes its input."""
    from torch.utils.checkpoint import checkpoint

    body = getattr(model, "body", model)
    layers, parts = list(body), []
    size = math.ceil(len(layers) / max(1, round(math.sqrt(len(layers)))))
    for layer in layers:
        if not parts or len(parts[-1]) >= size and not isinstance(layer, torch.nn.ReLU):
            parts.append([])
        parts[-1].append(layer)
    parts = [torch.nn.Sequential(*part) for part in parts]

    def forward(x):
        for part in parts[:-1]:
            x = checkpoint(part, x, use_reentrant=False)
        return parts[-1](x)

    return forward if body is model else lambda x: model.head(forward(model.embed(x)).mean(1))


class Training:
    def __init__(self, torch, settings):
        self.torch, self.settings = torch, settings
        self.gpu = settings["device"] != "cpu"
        torch.manual_seed(1)
        if settings["net"] == "transformer":
            from nets import Transformer

            self.model = Transformer(layers=12, width=512).to(settings["device"])
        else:
            import published_nets

            made = published_nets.NETS[settings["net"]]()
            self.model = made.to(settings["device"], memory_format=torch.channels_last)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9)
        self.checkpointed = checkpointed(torch, self.model)
        self.tried = None

    def data(self, batch):
        torch, device = self.torch, self.settings["device"]
        if self.settings["net"] == "transformer":
            return torch.randint(0, 1000, (batch, 256), device=device)
        return torch.randn(batch, 3, 32, 32, device=device).to(memory_format=torch.channels_last)

    def bound(self, capped):
        if not self.gpu:
            return
        gc.collect()
        self.torch.cuda.empty_cache()
        whole = self.torch.cuda.get_device_properties(self.settings["device"]).total_memory
        share = self.settings["cap"] / whole if capped and self.settings["cap"] else 1.0
        self.torch.cuda.set_per_process_memory_fraction(min(1.0, share), self.settings["device"])

    def swap(self):
        """None: the policy is not Tierpilot's."""
        if self.settings["policy"] in ("plain", "save-on-cpu", "checkpoint"):
            return None
        from tierpilot.swapping import Swap  # a new one each time: tierpilot.swap() has one for all who ask for the same

        budget, (policy, *more) = (self.settings["cap"] or 1 << 50) * 9 // 10, self.settings["policy"].split("+")
        return Swap(budget, policy, self.settings["tiers"], device=self.settings["device"], recompute=more == ["recompute"])

    def step(self, x, policy, swap=None):
        """Its seconds, until the GPU is done."""
        begin = time.perf_counter()

        def passes():
            if policy == "save-on-cpu":
                around = self.torch.autograd.graph.save_on_cpu(pin_memory=self.gpu)
            else:
                around = contextlib.nullcontext()
            self.optimiser.zero_grad(set_to_none=True)
            with around:
                loss = (self.checkpointed if policy == "checkpoint" else self.model)(x).square().mean()
            loss.backward()
            return loss.detach()

        loss = swap.step(passes) if swap else passes()
        self.optimiser.step()
        loss.item()
        return time.perf_counter() - begin

    def fits(self, batch):
        """One Swap for all tries, as its memory is pinned by then; another one after a failure, which lowers its budget."""
        try:
            x = self.data(batch)
            self.tried = self.tried or self.swap()
            for _ in range(TRIES):
                self.step(x, self.settings["policy"], self.tried)
            return True
        except (RuntimeError, MemoryError) as error:
            if "out of memory" not in str(error) and "too large" not in str(error):
                raise
            if self.tried:
                self.tried._core.close()
            self.tried = None
            return False
        finally:
            x = None
            self.bound(True)

    def largest(self, low):
        """To a sixteenth; `low` is where to begin. 0: not even one."""
        self.bound(True)
        while low and not self.fits(low):
            low //= 2
        high = 2 * low
        while 0 < high < 1 << 18 and self.fits(high):
            low, high = high, 2 * high
        while high - low > max(1, low // 16):
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle) else (low, middle)
        return low

    def leg(self, x, policy, swap, warm):
        for _ in range(warm):
            self.step(x, policy, swap)
        begin, seconds = time.perf_counter(), []
        while len(seconds) < 2 or len(seconds) < self.settings["leg"] and time.perf_counter() - begin < LEG_S:
            seconds.append(self.step(x, policy, swap))
        return statistics.median(seconds)

    def race(self, batch):
        """To plain training without a bound, in turn; None: there is no memory."""
        policy, x, ratios = self.settings["policy"], self.data(batch), []
        swap = self.swap()
        try:
            for turn in range(self.settings["rounds"]):
                self.bound(False)
                plain_s = self.leg(x, "plain", None, 1)
                self.bound(True)
                if self.gpu:
                    self.torch.cuda.reset_peak_memory_stats()
                ratios.append(plain_s / self.leg(x, policy, swap, 1 if turn or not swap else WARM))
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            return None
        said = swap.statistics() if swap else {}
        steps = max(1, said.get("steps", 1))
        return {"plain_s": plain_s, "speed": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
                "stall_ms": said.get("last_stall_ns", 0) / 1e6, "out_bytes": said.get("bytes_out", 0) / steps,
                "over_budget_steps": said.get("over_budget_steps", 0), "failures": said.get("failures", 0),
                "reserved_bytes": self.torch.cuda.max_memory_reserved() if self.gpu else 0}


def work(settings):
    import torch

    warnings.simplefilter("ignore")
    training = Training(torch, settings)
    if settings["batch"] is None:
        print(json.dumps(training.largest(settings["from"])))
        return
    with open(settings["lock"], "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(json.dumps(training.race(settings["batch"])))


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
