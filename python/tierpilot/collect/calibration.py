"""How fast this core is at the moment: a fixed piece of work that is timed beside each row."""

import time

import torch


class Calibration:
    def __init__(self):
        made = torch.Generator().manual_seed(1)
        self._left, self._right = (torch.randn(192, 192, generator=made) for _ in range(2))
        self._long = torch.randn(1 << 20, generator=made)

    def round(self):
        """Seconds for products, a pass over memory, and small calls."""
        began = time.perf_counter()
        with torch.no_grad():
            for _ in range(8):
                torch.mm(self._left, self._right)
            self._long.mul(1.5).add_(1)
            small = self._left[:4, :4]
            for _ in range(300):
                small = small.add(1)
        return time.perf_counter() - began
