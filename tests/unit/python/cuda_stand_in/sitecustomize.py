"""In place of a PyTorch with CUDA: its device is the processor. Who moves something there is a client
of the GPU that it may use, as the driver's stand-in (tests/fake_nvml) reads it."""

import os

import torch

CLIENT_BYTES = 3 << 30
_clients = set()


def _become_client():
    if os.getpid() not in _clients:
        _clients.add(os.getpid())
        with open(os.path.join(os.environ["FAKE_NVML"], "clients"), "a") as file:
            file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {os.getpid()} {CLIENT_BYTES}\n")
        if lost := os.environ.get("STAND_IN_LOSES"):
            with open(os.path.join(os.environ["FAKE_NVML"], "lost"), "w") as file:
                file.write(f"{lost}\n")


def _moving(to):
    def moved(self, *where, **named):
        if where and str(where[0]).startswith("cuda"):
            _become_client()
            where = ("cpu", *where[1:])
        return to(self, *where, **named)

    return moved


torch.version.cuda = "11.8"
torch.cuda.is_available = lambda: True
torch.cuda.synchronize = lambda *_: None
torch.Tensor.to = _moving(torch.Tensor.to)
torch.nn.Module.to = _moving(torch.nn.Module.to)
