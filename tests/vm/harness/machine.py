"""A declared machine and the QEMU arguments it stands for.

Keys of a case file (TOML); only nodes are required:

    kernel = "6.12-cloud"       Debian's branch: "6.12-cloud" or "cloud" (6.1)
    timeout_s = 120             from power-on to the end
    cpus = 2                    all on the first node
    kernel_arguments = ""
    modules = []                loaded at start, with what they need
    programs = []               from the build folder, to /bin, with their libraries
    packages = []               Debian packages, unpacked over the guest's root
    beside = false              true: another guest may run at the same time; its times are not the host's
    init = "script"             or "systemd": the script is then a service's
    count_instructions = true   the guest's clock counts them: its times do not depend on the host
    one_thread = false          true: emulates its CPUs in turns, some of them more slowly
    far_ns = 400                delay of programs' loads and stores on the second of two nodes
    far_kernel = false          true: of the kernel's too, as when it moves pages; a boot takes longer
    access_ns = 0               far_ns: an access begins so long after the CPU's last one or later
    disk_mib = 0                an empty disk: the script then starts in a file system on it, /mnt
    network = false             of user mode: this machine's loopback is 10.0.2.2; eth0 is not set up
    cxl_pmem_mib = 0            a CXL device with persistent memory behind a host bridge

    [files]                     "/etc/x" = "systemd/x": from the repository, or "build:PATH"

    [[node]]                    one for each NUMA node
    mib = 1024
    hidden = true               the kernel gets none of its memory: leaves a gap in the node ids
    latency_ns = 90             what the firmware's HMAT says of it, seen from the first node
    bandwidth_gb = 100
    distance = 20               in the firmware's SLIT, from every node before it
"""

import dataclasses
import itertools
import tomllib

MIB = 1 << 20
# On q35, memory below 4 GiB ends here, and what exceeds it starts at 4 GiB (hw/i386/pc_q35.c).
LOW_MEMORY_END = 0xB0000000
LOW_MEMORY_WHEN_SPLIT = 0x80000000


@dataclasses.dataclass
class Node:
    mib: int
    hidden: bool = False
    latency_ns: int | None = None
    bandwidth_gb: int | None = None
    distance: int = 20


@dataclasses.dataclass
class Machine:
    nodes: list[Node]
    kernel: str = "6.12-cloud"
    timeout_s: int = 120
    cpus: int = 2
    kernel_arguments: str = ""
    modules: list[str] = dataclasses.field(default_factory=list)
    programs: list[str] = dataclasses.field(default_factory=list)
    packages: list[str] = dataclasses.field(default_factory=list)
    beside: bool = False
    init: str = "script"
    count_instructions: bool = False
    one_thread: bool = False
    far_ns: int | None = None
    far_kernel: bool = False
    access_ns: int = 0
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    cxl_pmem_mib: int = 0
    disk_mib: int = 0
    network: bool = False

    def qemu_arguments(self):
        total = sum(node.mib for node in self.nodes)
        room = f",maxmem={4 * total}M,slots=4" if self.cxl_pmem_mib else ""
        hmat = any(node.latency_ns for node in self.nodes)
        arguments = ["-machine", f"q35,hmat={'on' if hmat else 'off'}{self._cxl_machine()}",
                     # With these, moving pages to emulated CXL is ten times slower.
                     "-cpu", "max,-erms,-fsrm",
                     "-smp", str(self.cpus),
                     "-m", f"{total}M{room}"]
        for number, node in enumerate(self.nodes):
            arguments += self._node(number, node)
        for (a, _), (b, far) in itertools.combinations(enumerate(self.nodes), 2):
            arguments += ["-numa", f"dist,src={a},dst={b},val={far.distance}"]
        if hmat:
            for number, node in enumerate(self.nodes):
                arguments += self._hmat(number, node)
        if self.network:
            arguments += ["-netdev", "user,id=net",
                          "-device", "virtio-net-pci,netdev=net,id=card,romfile="]
        return arguments + self._cxl_devices()

    def accelerator(self):
        if self.count_instructions:
            return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
        return ["-accel", f"tcg,thread={'single' if self.one_thread else 'multi'}"]

    def kernel_command_line(self):
        # On a busy host the kernel's check of the timer fails, though the timer works. Its checks of
        # its ciphers take a fifth of a boot.
        words = ["console=ttyS0", "panic=-1", "quiet", "mitigations=off", "no_timer_check",
                 "cryptomgr.notests", "audit=0", self.kernel_arguments]
        for number, node in enumerate(self.nodes):
            if node.hidden:
                start, end = self.node_range(number)
                words.append(f"memmap={end - start:#x}${start:#x}")
        return " ".join(word for word in words if word)

    def node_range(self, number):
        """Guest-physical [start, end) of a node's memory, which must not straddle the PCI hole."""
        total = sum(node.mib for node in self.nodes) * MIB
        low = total if total < LOW_MEMORY_END else LOW_MEMORY_WHEN_SPLIT
        start = sum(node.mib for node in self.nodes[:number]) * MIB
        end = start + self.nodes[number].mib * MIB
        if start < low < end:
            raise ValueError(f"node {number} straddles the PCI hole; sum up to {low // MIB} MiB")
        hole = (1 << 32) - low if start >= low else 0
        return start + hole, end + hole

    def delayed_from(self):
        """Addresses from here on are the second node's, as QEMU names them to plugins.

        QEMU 7.2 does not give the guest-physical address but a sum of offsets of its own, which for
        the second node is the larger of the two, and never so low as the first node's.
        """
        if len(self.nodes) != 2:
            raise ValueError("far_ns is for machines with two nodes")
        return self.nodes[0].mib * MIB

    def _node(self, number, node):
        who = f",cpus=0-{self.cpus - 1}" if number == 0 else ""
        if number and node.latency_ns:
            who = ",initiator=0"
        return ["-object", f"memory-backend-ram,id=m{number},size={node.mib}M",
                "-numa", f"node,nodeid={number},memdev=m{number}{who}"]

    @staticmethod
    def _hmat(number, node):
        where = f"hmat-lb,initiator=0,target={number},hierarchy=memory"
        return ["-numa", f"{where},data-type=access-latency,latency={node.latency_ns}",
                "-numa", f"{where},data-type=access-bandwidth,bandwidth={node.bandwidth_gb}G"]

    def _cxl_machine(self):
        if not self.cxl_pmem_mib:
            return ""
        return ",cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G"

    def _cxl_devices(self):
        if not self.cxl_pmem_mib:
            return []
        # Two root ports: with one, QEMU 7.2 lost stores.
        return ["-object", f"memory-backend-ram,id=cxl_memory,share=on,size={self.cxl_pmem_mib}M",
                "-object", "memory-backend-ram,id=cxl_label,share=on,size=256M",
                "-device", "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1",
                "-device", "cxl-rp,port=0,bus=cxl.1,id=port0,chassis=0,slot=2",
                "-device", "cxl-type3,bus=port0,memdev=cxl_memory,lsa=cxl_label,id=cxl-pmem0",
                "-device", "cxl-rp,port=1,bus=cxl.1,id=port1,chassis=0,slot=3"]


def load(path):
    with open(path, "rb") as file:
        keys = tomllib.load(file)
    try:
        return Machine(nodes=[Node(**node) for node in keys.pop("node")], **keys)
    except (KeyError, TypeError) as error:
        raise SystemExit(f"{path}: {error}") from error
