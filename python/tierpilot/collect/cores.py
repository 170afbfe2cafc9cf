"""Which cores there are beside one."""

import os


def core_beside(cpu):
    """Another core that shares a cache with this one and may be used; None: there is none."""
    allowed = os.sched_getaffinity(0)
    folder = f"/sys/devices/system/cpu/cpu{cpu}/cache"
    beside = set()
    for index in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if index.startswith("index"):
            with open(f"{folder}/{index}/shared_cpu_list") as file:
                beside |= _cpus(file.read())
    return min((beside & allowed) - {cpu}, default=None)


def _cpus(text):
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            found |= set(range(int(first), int(last or first) + 1))
    return found
