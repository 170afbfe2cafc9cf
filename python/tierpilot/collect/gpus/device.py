"""The GPU that is measured."""

import os

import torch

from ..child import in_child
from .nvml import Nvml, NvmlError


class Gpu:
    """`wanted`: "cuda" or "cuda:N", as CUDA numbers those that may be used. NvmlError: there is none
    such, or others compute on it. The children of this process see it alone."""

    def __init__(self, wanted):
        number = _number(wanted)
        if torch.version.cuda is None and not torch.cuda.is_available():
            raise NvmlError(
                f"this PyTorch ({torch.__version__}) was built without CUDA: name a Python whose PyTorch has it with --python"
            )
        with Nvml() as nvml:
            self.index = _index(nvml, number)
            device = nvml.device(self.index)
            self.uuid, self.features = nvml.uuid(device), nvml.features(device)
            self.driver = nvml.driver_version()
            self.mps = bool(os.environ.get("CUDA_MPS_PIPE_DIRECTORY"))  # programs run side by side there
            others = _others(nvml.processes(device), self.mps)
        if others:
            pids = ", ".join(str(pid) for pid in others)
            raise NvmlError(f"on GPU {self.index} others compute (process {pids}): what is measured there would be wrong")
        os.environ["CUDA_VISIBLE_DEVICES"] = self.uuid
        # CUDA does not outlive a fork, so that only children use it.
        if not in_child(torch.cuda.is_available):
            raise NvmlError(f"PyTorch {torch.__version__} finds no CUDA on GPU {self.index}, {self.features['gpu_name']}")
        if in_child(_can_import_early):
            _import_early()

    def machine(self):
        """For the description of a table."""
        return {
            "engine": "gpu",
            **self.features,
            "driver": self.driver,
            "cuda": torch.version.cuda,
            "mps": self.mps,
        }


def _others(pids, mps):
    """Those that compute, but for the one server of MPS, which stays when those that it served have ended. Within a
    container it has no name."""
    names = {pid: _name(pid) for pid in sorted(pids)}
    servers = [pid for pid, name in names.items() if mps and (name is None or name.startswith("nvidia-cuda-mps"))]
    return [pid for pid in names if pid not in servers[:1]]


def _name(pid):
    try:
        with open(f"/proc/{pid}/comm") as name:
            return name.read()
    except OSError:
        return None


def _import_early():
    """What newer versions of PyTorch import with the first optimizer, for seconds: once, in place of in
    each child."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1).zero_grad()


def _can_import_early():
    """No import has touched CUDA, so that children can still use it."""
    _import_early()
    return in_child(lambda: torch.cuda.is_available() and not torch.cuda._is_in_bad_fork())


def _number(wanted):
    name, _, number = wanted.partition(":")
    if name != "cuda" or not (number or "0").isdecimal():
        raise NvmlError(f"device '{wanted}' is unknown: 'cuda', or 'cuda:N'")
    return int(number or 0)


def _index(nvml, number):
    """By which NVML knows it."""
    count = nvml.count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(i) for i in range(count)] if visible is None else [name for name in visible.split(",") if name]
    if number >= len(names):
        raise NvmlError(f"there is no GPU {number}: {len(names)} may be used")
    name = names[number]
    if name.isdecimal() and int(name) < count:
        return int(name)
    for index in range(count):
        if name.startswith("GPU-") and nvml.uuid(nvml.device(index)).startswith(name):
            return index
    raise NvmlError(f"CUDA_VISIBLE_DEVICES names '{name}', which the driver does not know as a whole GPU")
