"""NVML, the NVIDIA driver's management library, opened where it is there. Only what is in use."""

import contextlib
import ctypes
from ctypes import byref, c_char_p, c_int, c_uint, c_ulonglong, c_void_p

LIBRARY = "libnvidia-ml.so.1"
_NOT_FOUND = 6
_NOT_AVAILABLE = (1 << 64) - 1
_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_MOST = 4096  # processes, samples
_TEXT_BYTES = 96


class NvmlError(RuntimeError):
    """With a message for people."""


class _Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class _Rates(ctypes.Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class _Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("memory", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint)]


class _Sample(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("at_us", c_ulonglong)] + [
        (name, c_uint) for name in ("sm", "memory", "encoder", "decoder")
    ]


class Nvml:
    """One thread and one process at a time; to be closed before a fork."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NvmlError(f"no driver of NVIDIA is here: {error}") from None
        self._library.nvmlErrorString.restype = c_char_p
        self._check(self._library.nvmlInit_v2(), "the driver does not answer")

    def close(self):
        self._library.nvmlShutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _check(self, code, what):
        if code:
            text = self._library.nvmlErrorString(code)
            raise NvmlError(f"{what}: {text.decode(errors='replace') if text else 'unknown error'} (NVML error {code})")

    def _find(self, name):
        with contextlib.suppress(AttributeError):
            return getattr(self._library, name)
        raise NvmlError(f"the driver is too old: it has no {name}")

    def count(self):
        count = c_uint()
        self._check(self._library.nvmlDeviceGetCount_v2(byref(count)), "GPUs cannot be counted")
        return count.value

    def device(self, index):
        device = c_void_p()
        code = self._library.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(device))
        self._check(code, f"GPU {index}")
        return device

    def uuid(self, device):
        return self._text("nvmlDeviceGetUUID", device)

    def features(self, device):
        """Of its kind, in the columns of a table; 0 where the driver does not tell."""
        major, minor = c_int(), c_int()
        with contextlib.suppress(NvmlError):
            self._check(self._find("nvmlDeviceGetCudaComputeCapability")(device, byref(major), byref(minor)), "")
        return {
            "gpu_name": self._text("nvmlDeviceGetName", device),
            "gpu_compute_capability": (10 * major.value + minor.value) / 10,
            "gpu_memory_bytes": self._memory(device).total,
            "gpu_cores": self._number("nvmlDeviceGetNumGpuCores", device),
            "gpu_sm_clock_mhz": self._number("nvmlDeviceGetMaxClockInfo", device, c_int(_SM_CLOCK)),
            "gpu_memory_clock_mhz": self._number("nvmlDeviceGetMaxClockInfo", device, c_int(_MEMORY_CLOCK)),
            "gpu_bus_width_bits": self._number("nvmlDeviceGetMemoryBusWidth", device),
        }

    def driver_version(self):
        with contextlib.suppress(NvmlError):
            return self._text("nvmlSystemGetDriverVersion")
        return "unknown"

    def used_bytes(self, device):
        return self._memory(device).used

    def busy_percent(self, device):
        """Of the time lately, whoever computed."""
        rates = _Rates()
        self._check(self._library.nvmlDeviceGetUtilizationRates(device, byref(rates)), "how busy the GPU is")
        return rates.gpu

    def processes(self, device):
        """Bytes of the GPU's memory by process that computes there; None: not told."""
        found = (_Process * _MOST)()
        count = c_uint(_MOST)
        call = self._find("nvmlDeviceGetComputeRunningProcesses_v3")
        self._check(call(device, byref(count), found), "processes on the GPU")
        each = found[: min(count.value, _MOST)]
        return {one.pid: None if one.memory == _NOT_AVAILABLE else one.memory for one in each}

    def samples(self, device, since_us):
        """(process, when, percent of the time in which it computed) of what the driver took since then."""
        found = (_Sample * _MOST)()
        count = c_uint(_MOST)
        call = self._find("nvmlDeviceGetProcessUtilization")
        code = call(device, found, byref(count), c_ulonglong(since_us))
        if code == _NOT_FOUND:
            return []
        self._check(code, "what processes use of the GPU")
        each = found[: min(count.value, _MOST)]
        return [(one.pid, one.at_us, min(one.sm, 100)) for one in each if one.at_us > since_us]

    def _memory(self, device):
        memory = _Memory()
        self._check(self._library.nvmlDeviceGetMemoryInfo(device, byref(memory)), "the GPU's memory")
        return memory

    def _text(self, name, *given):
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        self._check(self._find(name)(*given, text, c_uint(_TEXT_BYTES)), name)
        return text.value.decode(errors="replace")

    def _number(self, name, *given):
        value = c_uint()
        with contextlib.suppress(NvmlError):
            self._check(self._find(name)(*given, byref(value)), name)
        return value.value
