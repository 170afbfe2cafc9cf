"""What a model trains on: which tensors lie there, in which stream they are made, and how much of its memory the program
holds."""

import operator

import torch

from .storages import untyped


class Processor:
    """Libtierpilot-swap measures what the process holds; nothing is computed later than it is called for."""

    name = "cpu"
    takes = staticmethod(operator.attrgetter("is_cpu"))
    stream = memory = None

    def new_storage(self, size):
        return untyped(torch.empty(size, dtype=torch.uint8, device="cpu"))

    def out_of_memory(self, error):
        return "allocate memory" in str(error)


class Cuda:
    """A GPU, in the streams of whoever computes. What it holds is what PyTorch's allocator has given out: what lies free
    in that one's cache is none of it."""

    def __init__(self, index):
        self.index = index
        self.name = f"cuda:{index}"
        self._device = torch.device("cuda", index)

    def takes(self, tensor):
        return tensor.is_cuda and tensor.get_device() == self.index

    def stream(self):
        return torch.cuda.current_stream(self.index).cuda_stream

    def memory(self):
        """Bytes held, and the most since this was asked for last."""
        held, peak = torch.cuda.memory_allocated(self.index), torch.cuda.max_memory_allocated(self.index)
        torch.cuda.reset_peak_memory_stats(self.index)
        return held, peak

    def new_storage(self, size):
        return untyped(torch.empty(size, dtype=torch.uint8, device=self._device))

    def used_here(self, tensor):
        """By the stream that computes now, beside the one in which its memory was taken."""
        tensor.record_stream(torch.cuda.current_stream(self.index))

    def out_of_memory(self, error):
        return "out of memory" in str(error)


def checked(name):
    """The name, if it is "cpu", "cuda" (the one that PyTorch computes on) or "cuda:1"; else ValueError. Begins no CUDA."""
    try:
        known = torch.device(name).type in ("cpu", "cuda")
    except (RuntimeError, TypeError):
        known = False
    if not known:
        raise ValueError(f"tierpilot.swap: device {name!r} is not known: say 'cpu', 'cuda' or 'cuda:N'")
    return name


def named(name):
    device = torch.device(name)
    if device.type == "cpu":
        return Processor()
    if device.index is not None:
        return Cuda(device.index)
    try:
        return Cuda(torch.cuda.current_device())
    except (AssertionError, RuntimeError) as error:
        raise ValueError(f"tierpilot.swap: device {name!r}: {error}") from None


def found(tensor=None):
    """That of the tensor; without one a GPU, where PyTorch uses one by now, else the processor."""
    if tensor is not None:
        return Cuda(tensor.get_device()) if tensor.is_cuda else Processor()
    return Cuda(torch.cuda.current_device()) if torch.cuda.is_initialized() else Processor()
