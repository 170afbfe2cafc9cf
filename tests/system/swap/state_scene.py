"""What the tests of states of optimisers share: optimisers, a training, and how to tell that states have left."""
import contextlib
import time

from scene import Swap

import torch  # after scene, which skips without it


class Own(torch.optim.Optimizer):
    """One that tierpilot does not know: it keeps tensors of all parameters at the first one, and its own count of steps."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-3, "steps": 0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["steps"] += 1
            for parameter in group["params"]:
                state = self.state[parameter]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(parameter)
                mean = state["mean"]
                state["mean"] = mean.mul(0.9).add_(parameter.grad)
                parameter.sub_(state["mean"], alpha=group["lr"] / group["steps"])


OPTIMISERS = {
    "momentum": lambda p: torch.optim.SGD(p, 1e-4, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, 1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3, amsgrad=True),
    "foreach": lambda p: torch.optim.Adam(p, 1e-3, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-4, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-3),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p, 1e-3),
    "nadam": lambda p: torch.optim.NAdam(p, 1e-3),
    "radam": lambda p: torch.optim.RAdam(p, 1e-3),
    "asgd": lambda p: torch.optim.ASGD(p, 1e-4),
    "rprop": lambda p: torch.optim.Rprop(p, 1e-4),
    "lbfgs": lambda p: torch.optim.LBFGS(p, 1e-3, max_iter=3),
    "own": Own,
}


def everything_leaves(**settings):
    # Room for all, and few enough that a step is taken in two parts.
    return Swap("512MiB", "swap-all", "memory=256MiB", states=True, **settings)


class Training:
    """A perceptron whose states lie in several parts; `made` is asked for its optimiser."""

    def __init__(self, made, swap=None, width=512):
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(12)])
        self.optimiser = made(self.model.parameters())
        self.swap = swap or contextlib.nullcontext()
        with self.swap:  # it hears of steps from now on
            pass

    def loss(self):
        with self.swap:
            loss = self.model(torch.randn(16, self.model[0].in_features)).square().sum()
        loss.backward()
        return loss

    def steps(self, count):
        for _ in range(count):
            self.step()
        return self

    def slow_steps(self, count):
        """All that may leave is away before the next step: what is asked for while its copy runs stays for that step."""
        for _ in range(count):
            self.step()
            if isinstance(self.swap, Swap):
                self.away()
        return self

    def step(self):
        def closure():
            self.optimiser.zero_grad()
            torch.manual_seed(8)  # it may be asked again
            return self.loss()

        if isinstance(self.optimiser, torch.optim.LBFGS):
            self.optimiser.step(closure)
        else:
            closure()
            self.optimiser.step()

    def values(self):
        """Parameters, and all that the optimiser keeps."""
        kept = [
            value
            for state in self.optimiser.state_dict()["state"].values()
            for value in state.values()
            if isinstance(value, torch.Tensor)
        ]
        return [p.detach() for p in self.model.parameters()] + kept

    def kept(self):
        taken = [state for state in self.optimiser.state.values() if type(state) is not dict]
        return [kept for state in taken for kept in state.kept()]

    def away(self, within_s=60):
        """How many of its tensors are away, when all are or so much time has passed."""
        deadline = time.monotonic() + within_s
        while any(kept.number and kept.tensor is not None for kept in self.kept()) and time.monotonic() < deadline:
            time.sleep(0.001)
            self.swap._reap()
        return sum(kept.tensor is None for kept in self.kept())
