"""PyTorch on the GPU that is measured."""

import torch

from ..child import in_child
from .nvml import NvmlError


def prepare_pytorch(gpu):
    """For children, which use it there. NvmlError: it cannot be used."""
    if torch.version.cuda is None and not torch.cuda.is_available():
        raise NvmlError(
            f"this PyTorch ({torch.__version__}) was built without CUDA: name a Python whose PyTorch has it with --python"
        )
    # CUDA does not outlive a fork, so that only children use it.
    if not in_child(torch.cuda.is_available):
        raise NvmlError(f"PyTorch {torch.__version__} finds no CUDA on GPU {gpu.index}, {gpu.features['gpu_name']}")
    if in_child(_can_import_early):
        _import_early()


def _import_early():
    """What newer versions of PyTorch import with the first optimizer, for seconds: once, in place of in
    each child."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1).zero_grad()


def _can_import_early():
    """No import has touched CUDA, so that children can still use it."""
    _import_early()
    return in_child(lambda: torch.cuda.is_available() and not torch.cuda._is_in_bad_fork())
