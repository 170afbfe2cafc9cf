#!/usr/bin/env python3
"""What host memory costs to take and pin for a GPU's copies, and how fast they are: shared, private in huge pages, private in small
ones, and the driver's own. Needs a GPU and a PyTorch that has CUDA.

    pinned_memory.py [--gib 1]
"""
import argparse
import ctypes
import mmap
import statistics
import time

import torch

PIECE = 64 << 20  # as libtierpilot-swap pins it
HUGE = 2 << 20
MADV_HUGEPAGE, MADV_NOHUGEPAGE = 14, 15
ROUNDS = 5


class Driver:
    def __init__(self):
        torch.zeros(1, device="cuda")  # a context
        self.cuda, self.libc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
        address, size = ctypes.c_void_p, ctypes.c_size_t
        self.libc.mmap.restype = address
        self.libc.mmap.argtypes = [address, size, *[ctypes.c_int] * 3, ctypes.c_long]
        self.libc.madvise.argtypes = [address, size, ctypes.c_int]
        self.cuda.cuMemHostRegister_v2.argtypes = [address, size, ctypes.c_uint]
        self.cuda.cuMemcpyDtoHAsync_v2.argtypes = [address, ctypes.c_uint64, size, address]
        self.cuda.cuMemcpyHtoDAsync_v2.argtypes = [ctypes.c_uint64, address, size, address]

    def take(self, kind, size):
        """(address, seconds)"""
        begin = time.perf_counter()
        if kind == "driver's own":
            data = ctypes.c_void_p()
            code = self.cuda.cuMemHostAlloc(ctypes.byref(data), ctypes.c_size_t(size), ctypes.c_uint(1))
            data = data.value
        else:
            flags = mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if kind == "shared" else mmap.MAP_PRIVATE)
            raw = self.libc.mmap(None, size + HUGE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
            data = (raw + HUGE - 1) // HUGE * HUGE
            if kind != "shared":
                self.libc.madvise(data, size, MADV_HUGEPAGE if kind == "huge pages" else MADV_NOHUGEPAGE)
            code = 0
            for at in range(0, size, PIECE):
                code = code or self.cuda.cuMemHostRegister_v2(data + at, PIECE, 1)
        if code:
            raise SystemExit(f"{kind}: the driver pins no {size} bytes: error {code}")
        return data, time.perf_counter() - begin


class Copies:
    def __init__(self, driver, size):
        self.driver, self.size = driver, size
        self.parts = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
        self.streams = [torch.cuda.Stream() for _ in range(2)]

    def gb_per_s(self, data, out, back, piece=PIECE):
        """Each way."""
        rates = []
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for at in range(0, self.size // 2, piece):
                if out:
                    self.driver.cuda.cuMemcpyDtoHAsync_v2(data + at, self.parts[0].data_ptr() + at, piece, self.streams[0].cuda_stream)
                if back:
                    there = data + self.size // 2 + at
                    self.driver.cuda.cuMemcpyHtoDAsync_v2(self.parts[1].data_ptr() + at, there, piece, self.streams[1].cuda_stream)
            torch.cuda.synchronize()
            rates.append(self.size // 2 / (time.perf_counter() - begin) / 1e9)
        return statistics.median(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=int, default=1)
    size = parser.parse_args().gib << 30
    driver = Driver()
    copies = Copies(driver, size)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; GB/s in pieces of {PIECE >> 20} MiB")
    for kind in ("shared", "huge pages", "small pages", "driver's own"):
        data, seconds = driver.take(kind, size)
        out, back, both = (copies.gb_per_s(data, *ways) for ways in ((True, False), (False, True), (True, True)))
        print(f"{kind:13s} {seconds / (size >> 30):.2f} s/GiB  out {out:.1f}  in {back:.1f}  both at once {both:.1f}", flush=True)


if __name__ == "__main__":
    main()
