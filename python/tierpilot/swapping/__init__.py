"""Tensors that leave memory while a PyTorch model trains: tierpilot.swap().

Everything here needs PyTorch and libtierpilot-swap; nothing of it is loaded by `import tierpilot`.
"""

from .opened import swap
from .session import Swap

__all__ = ["Swap", "swap"]
