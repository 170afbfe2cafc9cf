#include "bpf/fault_time.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/owners.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

class FaultTime final : public Subject {
 public:
  FaultTime(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  Status start(HookForm form) {
    skeleton_.reset(tp_fault_time::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_fault_period = context_.options.fault_time_period;
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    skeleton_->rodata->tp_node_shift = context_.node_shift;
    programs_.choose_form(skeleton_->obj, form);
    return programs_.want_tracepoint(skeleton_->progs.tp_fault_alloc, 4)
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); })
        .and_then([&] { return programs_.attach_hooks(); });
  }

  void sample(PassiveSample& sample) override {
    auto stats = decode(read_array<tp_hist>(skeleton_->maps.tp_fault_ns));
    stats.lost = skeleton_->bss->tp_untimed + missed_runs();
    sample.fault_time = std::move(stats);
  }

  void track(int32_t pgid, const OwnCgroup& /*cgroup*/) override {
    owners().track(owner_of_group(pgid));
  }
  void untrack(int32_t pgid) override {
    owners().untrack(owner_of_group(pgid), [this] { return used(); });
  }
  void read_group(int32_t pgid, GroupIo& group) const override {
    group.fault_time = read_owner(owner_of_group(pgid));
  }

  void track_cgroup(uint64_t id) override { owners().track(id); }
  void read_cgroup(uint64_t id, CgroupMemory& cgroup) const override {
    cgroup.fault_time = read_owner(id);
  }

  const Programs& programs() const override { return programs_; }

 private:
  Owners<tp_hist> owners() const {
    return {skeleton_->maps.tp_fault_owners, skeleton_->maps.tp_fault_owned, TP_NODES + 1};
  }

  // Nodes that faults of anybody's were timed on.
  std::vector<uint32_t> used() const {
    const auto machine = read_array<tp_hist>(skeleton_->maps.tp_fault_ns);
    return used_elements<tp_hist>(
        machine, [](const tp_hist& hist) { return hist.sum > 0 || hist.buckets[0] > 0; });
  }

  FaultTimeStats decode(const std::vector<tp_hist>& durations_ns) const {
    FaultTimeStats stats{.period = std::max(context_.options.fault_time_period, 1u)};
    for (size_t slot = 0; slot < durations_ns.size(); ++slot) {
      const auto decoded = decode_histogram(durations_ns[slot]);
      if (slot == TP_NODES)
        stats.no_page_ns = decoded;
      else if (decoded.count() > 0)
        stats.by_node_ns.emplace(static_cast<int>(slot), decoded);
    }
    return stats;
  }

  std::optional<FaultTimeStats> read_owner(uint64_t owner) const {
    const auto lost = owners().lost(owner);
    if (!lost) return std::nullopt;
    auto stats = decode(owners().read(owner, used()));
    stats.lost = *lost;
    return stats;
  }

  // The kernel skips a program that already runs on the CPU.
  uint64_t missed_runs() const {
    uint64_t missed = 0;
    for (const ::bpf_program* program : programs_.attached()) {
      bpf_prog_info info{};
      __u32 size = sizeof info;
      if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0)
        missed += info.recursion_misses;
    }
    return missed;
  }

  SubjectContext& context_;
  SkeletonPtr<tp_fault_time> skeleton_;
  Programs programs_;
};

}  // namespace

StartedSubject start_fault_time(SubjectContext& context, TracepointType type) {
  return start_with_some_form([&](HookForm form) -> StartedSubject {
    auto subject = std::make_unique<FaultTime>(context, type);
    if (auto status = subject->start(form); !status) return tl::unexpected(status.error());
    return subject;
  });
}

}  // namespace tierpilot
