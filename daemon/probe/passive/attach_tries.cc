#include "daemon/probe/passive/attach_tries.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/sysroot.h"
#include "base/unique_fd.h"
#include "daemon/probe/passive/kernel_btf.h"

namespace tierpilot {
namespace {

// Rare events, so that the empty programs run for nobody while they are attached.
constexpr const char* kRareTracepoint = "oom_score_adj_update";
constexpr const char* kRareFunction = "bpf_fentry_test1";
constexpr const char* kRareLsmHook = "bpf_lsm_syslog";

struct Failure {
  std::string step;
  int err;
};
using Attempt = tl::expected<void, Failure>;

Attempt failed(std::string step, int err = errno) {
  return tl::unexpected(Failure{std::move(step), err});
}

struct Kind {
  bpf_prog_type type;
  bpf_attach_type attach = static_cast<bpf_attach_type>(0);
  int btf_id = 0;
};

// r0 = 0; exit
UniqueFd load_empty(const Kind& kind) {
  const bpf_insn empty[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
                            {.code = BPF_JMP | BPF_EXIT}};
  LIBBPF_OPTS(bpf_prog_load_opts, opts);
  opts.expected_attach_type = kind.attach;
  opts.attach_btf_id = static_cast<__u32>(kind.btf_id);
  return UniqueFd(bpf_prog_load(kind.type, "tp_try", "GPL", empty, std::size(empty), &opts));
}

UniqueFd open_event(perf_event_attr& attr) {
  attr.size = sizeof attr;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
}

Attempt try_raw_tracepoint(const Kind& kind, const char* name) {
  const UniqueFd program = load_empty(kind);
  if (!program) return failed("load");
  const UniqueFd link(bpf_raw_tracepoint_open(name, program.get()));
  if (!link) return failed("attach");
  return {};
}

// tp_btf, fentry and LSM programs name what they attach to by its id in the kernel's BTF.
Attempt try_typed(bpf_prog_type type, bpf_attach_type attach, int btf_id) {
  if (btf_id == 0) return failed("finding it in the kernel's BTF", ENOENT);
  return try_raw_tracepoint({type, attach, btf_id}, nullptr);
}

Attempt try_iterator(int btf_id) {
  if (btf_id == 0) return failed("finding it in the kernel's BTF", ENOENT);
  const UniqueFd program = load_empty({BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, btf_id});
  if (!program) return failed("load");
  const UniqueFd link(bpf_link_create(program.get(), 0, BPF_TRACE_ITER, nullptr));
  if (!link) return failed("attach");
  return {};
}

Attempt attach_to_event(const Kind& kind, perf_event_attr& attr) {
  const UniqueFd program = load_empty(kind);
  if (!program) return failed("load");
  const UniqueFd event = open_event(attr);
  if (!event) return failed("perf_event_open");
  if (::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program.get()) != 0) return failed("attach");
  return {};
}

Attempt try_software_event() {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  attr.sample_type = PERF_SAMPLE_ADDR;
  attr.sample_period = UINT32_MAX;
  attr.exclude_kernel = 1;
  return attach_to_event({BPF_PROG_TYPE_PERF_EVENT}, attr);
}

// Probes by way of perf's own "kprobe" and "uprobe" devices, which need no tracefs.
Attempt try_probe(const std::string& device, const char* target, uint64_t offset) {
  const auto type = Sysroot().read_int("/sys/bus/event_source/devices/" + device + "/type");
  if (!type) return failed("the kernel has no " + device + "s", ENOENT);
  perf_event_attr attr{};
  attr.type = static_cast<__u32>(*type);
  attr.config1 = reinterpret_cast<uintptr_t>(target);
  attr.config2 = offset;
  attr.sample_period = 1;
  return attach_to_event({BPF_PROG_TYPE_KPROBE}, attr);
}

Attempt try_uprobe() {
  // The ELF header of the own program: an address that is never executed.
  return try_probe("uprobe", "/proc/self/exe", 0);
}

FeatureReport report(const std::string& feature, const Attempt& attempt,
                     const Capabilities& capabilities) {
  if (attempt) return {feature, true, "loaded and attached"};
  // ENOTSUPP is the kernel's own, strerror does not know it.
  const int err = attempt.error().err == 524 ? EOPNOTSUPP : attempt.error().err;
  return {feature, false, unavailable_reason(attempt.error().step, err, "", capabilities)};
}

}  // namespace

std::vector<FeatureReport> try_programs(const KernelBtf* btf, const Capabilities& capabilities) {
  const auto function = [btf](const char* name) { return btf ? btf->function_id(name) : 0; };
  const std::pair<const char*, Attempt> attempts[] = {
      {"program tp_btf", try_typed(BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP,
                                   btf ? btf->tracepoint_id(kRareTracepoint) : 0)},
      {"program raw_tp", try_raw_tracepoint({BPF_PROG_TYPE_RAW_TRACEPOINT}, kRareTracepoint)},
      {"program perf_event", try_software_event()},
      {"program iter/task_vma", try_iterator(function("bpf_iter_task_vma"))},
      {"program uprobe", try_uprobe()},
      {"program kprobe", try_probe("kprobe", kRareFunction, 0)},
      {"program fentry",
       try_typed(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, function(kRareFunction))},
      {"program lsm", try_typed(BPF_PROG_TYPE_LSM, BPF_LSM_MAC, function(kRareLsmHook))},
  };
  std::vector<FeatureReport> reports;
  for (const auto& [feature, attempt] : attempts)
    reports.push_back(report(feature, attempt, capabilities));
  return reports;
}

std::vector<FeatureReport> try_maps(const Capabilities& capabilities) {
  struct Try {
    const char* name;
    bpf_map_type type;
    uint32_t key_bytes, value_bytes, entries, flags;
  };
  const auto page = static_cast<uint32_t>(::sysconf(_SC_PAGESIZE));
  const Try tries[] = {
      {"map percpu_array", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0},
      {"map hash", BPF_MAP_TYPE_HASH, 4, 8, 1, BPF_F_NO_PREALLOC},
      {"map percpu_hash", BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 1, BPF_F_NO_PREALLOC},
      {"map ringbuf", BPF_MAP_TYPE_RINGBUF, 0, 0, page, 0},
  };
  std::vector<FeatureReport> reports;
  for (const Try& map : tries) {
    LIBBPF_OPTS(bpf_map_create_opts, opts);
    opts.map_flags = map.flags;
    const UniqueFd fd(
        bpf_map_create(map.type, "tp_try", map.key_bytes, map.value_bytes, map.entries, &opts));
    reports.push_back(
        fd ? FeatureReport{map.name, true, "created"}
           : FeatureReport{map.name, false,
                           unavailable_reason("creating it", errno, "", capabilities)});
  }
  return reports;
}

}  // namespace tierpilot
