// A far memory tier of known latency: QEMU's TCG waits before loads and stores at and above a
// physical address.
//
//   -plugin fartier.so,start=0x80000000,ns=400,every=1000
//
// What the emulator takes for an access changes with the host's caches and clock, from one moment
// to the next. With `every`, a CPU's accesses begin no sooner than so many ns after its last one,
// so that a chain of them takes that long on any host that keeps up.
//
// A processor does not go to memory for every access, and neither does this: lines that a CPU has
// touched lately are not delayed. The filter is direct-mapped and by virtual address, as the L1
// cache that it stands for, and as large: 32 KiB.
//
// The kernel's own accesses are delayed with kernel=1 only: a boot takes longer with it.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "qemu_plugin.h"

enum { kMaxCpus = 64, kLineBits = 6, kLines = 512 };
static const uint64_t kKernelStart = (uint64_t)1 << 63;

struct cpu {
  uint64_t lines[kLines];
  uint64_t last;  // TSC at the end of the last access
  uint64_t delayed;
} __attribute__((aligned(64)));

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static uint64_t far_start = UINT64_MAX, delay_ns, delay_cycles, every_ns, every_cycles, kernel_too;
static struct cpu cpus[kMaxCpus];

// Without pause: on some processors it takes as long as the delays here.
static void wait_until(uint64_t end) {
  while ((int64_t)(end - __rdtsc()) > 0) {
  }
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t virtual_address,
                      void* data) {
  (void)data;
  struct cpu* cpu = &cpus[vcpu % kMaxCpus];
  const uint64_t line = virtual_address >> kLineBits;
  uint64_t* slot = &cpu->lines[line % kLines];
  if (*slot == line) return;
  *slot = line;
  // The host's own miss of this line must not overlap with what follows, near or far.
  _mm_lfence();
  const struct qemu_plugin_hwaddr* address = qemu_plugin_get_hwaddr(info, virtual_address);
  if (!address || qemu_plugin_hwaddr_is_io(address)) return;
  const bool far = qemu_plugin_hwaddr_phys_addr(address) >= far_start;
  // From here on: what finding the address costs, accesses to the near node cost too.
  uint64_t end = __rdtsc();
  if (every_ns) {
    const uint64_t earliest = cpu->last + every_cycles;
    if ((int64_t)(earliest - end) > 0) end = earliest;
  }
  if (far) {
    ++cpu->delayed;
    end += delay_cycles;
  }
  wait_until(end);
  if (every_ns) cpu->last = __rdtsc();
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  if (!kernel_too && qemu_plugin_tb_vaddr(block) >= kKernelStart) return;
  const size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; ++i)
    qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), on_access,
                                     QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}

static void on_exit(qemu_plugin_id_t id, void* data) {
  (void)id;
  (void)data;
  uint64_t delayed = 0;
  for (int i = 0; i < kMaxCpus; ++i) delayed += cpus[i].delayed;
  fprintf(stderr, "fartier: %" PRIu64 " accesses delayed by %" PRIu64 " ns\n", delayed, delay_ns);
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double cycles_per_ns(void) {
  const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
  const double begin_ns = now_ns();
  const uint64_t begin = __rdtsc();
  nanosleep(&pause, NULL);
  return (double)(__rdtsc() - begin) / (now_ns() - begin_ns);
}

// "start=0x1000": false when it is none of ours.
static bool set_option(const char* argument) {
  static const struct {
    const char* name;
    uint64_t* value;
  } options[] = {
      {"start=", &far_start}, {"ns=", &delay_ns}, {"every=", &every_ns}, {"kernel=", &kernel_too}};
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
    const size_t length = strlen(options[i].name);
    if (strncmp(argument, options[i].name, length) != 0) continue;
    *options[i].value = strtoull(argument + length, NULL, 0);
    return true;
  }
  return false;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                           char** argv) {
  (void)info;
  for (int i = 0; i < argc; ++i) {
    if (set_option(argv[i])) continue;
    fprintf(stderr, "fartier: unknown option %s\n", argv[i]);
    return -1;
  }
  const double frequency = cycles_per_ns();
  delay_cycles = (uint64_t)(frequency * (double)delay_ns);
  every_cycles = (uint64_t)(frequency * (double)every_ns);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit, NULL);
  return 0;
}
