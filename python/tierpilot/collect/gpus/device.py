"""The GPU that is measured."""

import os

from .nvml import Nvml, NvmlError


class Gpu:
    """`wanted`: "cuda" or "cuda:N", as CUDA numbers those that may be used. NvmlError: there is none
    such, or others compute on it. This process and its children see it alone."""

    def __init__(self, wanted):
        number = _number(wanted)
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

    def machine(self):
        """For the description of a table."""
        return {
            "engine": "gpu",
            **self.features,
            "driver": self.driver,
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
