#include <fmt/format.h>
#include <linux/perf_event.h>

#include "bpf/faults.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

class Faults final : public Subject {
 public:
  Faults(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  Status start() {
    skeleton_.reset(tp_faults::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    auto& progs = skeleton_->progs;
    const bool sampled = !programs_.want_tracepoint(progs.tp_fault_user, 3);
    programs_.skip(sampled ? progs.tp_fault_user : progs.tp_fault_sample);
    if (auto loaded = programs_.load(skeleton_->skeleton); !loaded) return loaded;
    const auto counting = sampled ? attach_sampling() : programs_.attach_tracepoints();
    if (!counting) return counting;
    if (!sampled) source_ = "tracepoint page_fault_user, every fault";
    const auto major =
        programs_.attach_software_event(progs.tp_fault_major, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1);
    has_major_ = major.has_value();
    if (!has_major_) programs_.note_shortfall("major faults: " + major.error().message);
    return {};
  }

  void sample(PassiveSample& sample) override {
    sample.faults = decode(read_counters<tp_fault_stats>(skeleton_->maps.tp_faults));
  }

  void track(int32_t pgid, uint64_t /*cgroup_id*/) override {
    put_element(skeleton_->maps.tp_fault_groups, pgid, per_cpu_slots<tp_fault_stats>());
  }

  void untrack(int32_t pgid) override { drop_element(skeleton_->maps.tp_fault_groups, pgid); }

  void read_group(int32_t pgid, GroupIo& group) const override {
    auto counters = per_cpu_slots<tp_fault_stats>();
    if (get_element(skeleton_->maps.tp_fault_groups, pgid, counters))
      group.faults = decode(sum_cpus(counters));
  }

  const Programs& programs() const override { return programs_; }

 private:
  Status attach_sampling() {
    const uint32_t period = std::max(context_.options.fault_sample_period, 1u);
    source_ = fmt::format("software event page-faults, every {}th fault of a CPU", period);
    return programs_.attach_software_event(skeleton_->progs.tp_fault_sample,
                                           PERF_COUNT_SW_PAGE_FAULTS, period);
  }

  FaultStats decode(const tp_fault_stats& stats) const {
    FaultStats result{.faults = stats.faults, .source = source_};
    if (has_major_) result.major = stats.major;
    return result;
  }

  SubjectContext& context_;
  SkeletonPtr<tp_faults> skeleton_;
  Programs programs_;
  std::string source_;
  bool has_major_ = false;
};

}  // namespace

StartedSubject start_faults(SubjectContext& context, TracepointType type) {
  auto subject = std::make_unique<Faults>(context, type);
  if (auto status = subject->start(); !status) return tl::unexpected(status.error());
  return subject;
}

}  // namespace tierpilot
