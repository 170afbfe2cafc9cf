#include "daemon/memory/heat/fault_recorder.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/stat.h>

#include "daemon/probe/passive/libbpf_log.h"

namespace tierpilot {
namespace {

std::optional<KernelBtf> load_btf() {
  auto btf = KernelBtf::load();
  if (!btf) return {};
  return std::move(*btf);
}

}  // namespace

FaultRecorder::FaultRecorder()
    : btf_(load_btf()),
      context_{.options = options_,
               .btf = btf_ ? &*btf_ : nullptr,
               .capabilities = Capabilities::of_self(),
               .pidns_inum = 0,
               .reasons = {}},
      programs_(context_, btf_ ? TracepointType::kTpBtf : TracepointType::kRawTp) {}

Result<std::shared_ptr<FaultRecorder>> FaultRecorder::open() {
  capture_libbpf_log();
  clear_libbpf_reason();
  std::shared_ptr<FaultRecorder> recorder(new FaultRecorder);
  if (auto status = recorder->start(); !status) return tl::unexpected(status.error());
  // Only loading needed it, and it is several MiB.
  recorder->context_.btf = nullptr;
  recorder->btf_.reset();
  return recorder;
}

Status FaultRecorder::start() {
  skeleton_.reset(tp_fault_addr::open(nullptr));
  if (!skeleton_)
    return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
  struct stat pidns {};
  if (::stat("/proc/self/ns/pid", &pidns) != 0)
    return fail_errno(errno, "pid namespace '/proc/self/ns/pid'");
  skeleton_->rodata->tp_pidns_dev = pidns.st_dev;
  skeleton_->rodata->tp_pidns_ino = pidns.st_ino;
  auto& progs = skeleton_->progs;
  const bool traced = programs_.want_tracepoint(progs.tp_fault_at, 3).has_value();
  programs_.skip(traced ? progs.tp_fault_event : progs.tp_fault_at);
  if (auto loaded = programs_.load(skeleton_->skeleton); !loaded) return loaded;
  return traced
             ? programs_.attach_tracepoints()
             : programs_.attach_software_event(progs.tp_fault_event, PERF_COUNT_SW_PAGE_FAULTS, 1);
}

Status FaultRecorder::watch(pid_t pid) {
  const uint64_t none = 0;
  const int err = bpf_map__update_elem(skeleton_->maps.tp_fault_pids, &pid, sizeof pid, &none,
                                       sizeof none, BPF_ANY);
  if (err != 0)
    return fail_errno(-err, fmt::format("process {}: its faults cannot be watched", pid));
  pending_[pid];
  return {};
}

void FaultRecorder::unwatch(pid_t pid) {
  bpf_map__delete_elem(skeleton_->maps.tp_fault_pids, &pid, sizeof pid, 0);
  pending_.erase(pid);
}

// One at a time: batched removal needs 5.6 and, in a full map of 16,384, saves 10 ms a drain.
void FaultRecorder::drain() {
  auto* map = skeleton_->maps.tp_fault_pages;
  tp_fault_page key{};
  const size_t limit = bpf_map__max_entries(map);
  // Bounded, as the process goes on faulting meanwhile.
  for (size_t i = 0; i < limit && bpf_map__get_next_key(map, nullptr, &key, sizeof key) == 0; ++i) {
    uint64_t count = 0;
    if (bpf_map__lookup_elem(map, &key, sizeof key, &count, sizeof count, 0) == 0) {
      const auto watched = pending_.find(static_cast<pid_t>(key.tgid));
      if (watched != pending_.end()) watched->second[key.page * kBasePageBytes] += count;
    }
    bpf_map__delete_elem(map, &key, sizeof key, 0);
  }
}

FaultCounts FaultRecorder::take(pid_t pid) {
  drain();
  const auto watched = pending_.find(pid);
  return watched == pending_.end() ? FaultCounts{} : std::exchange(watched->second, {});
}

}  // namespace tierpilot
