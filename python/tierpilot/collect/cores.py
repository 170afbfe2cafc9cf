"""Which cores there are beside one."""

import os


def core_beside(cpu, cpus="/sys/devices/system/cpu"):
    """Another core that shares a cache with this one and may be used; None: there is none."""
    allowed = os.sched_getaffinity(0)
    folder = f"{cpus}/cpu{cpu}/cache"
    beside = set()
    for index in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if index.startswith("index"):
            beside |= _cpus_in(f"{folder}/{index}/shared_cpu_list")
    # Threads of one core are no two cores.
    return min((beside & allowed) - {cpu} - _cpus_in(f"{cpus}/cpu{cpu}/topology/thread_siblings_list"), default=None)


def _cpus_in(path):
    try:
        with open(path) as file:
            text = file.read()
    except OSError:
        return set()
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            found |= set(range(int(first), int(last or first) + 1))
    return found
