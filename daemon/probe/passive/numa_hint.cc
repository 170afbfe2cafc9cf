#include <fmt/format.h>

#include "bpf/numa_hint.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"
#include "daemon/probe/passive/vm_counters.h"

namespace tierpilot {
namespace {

class NumaHint final : public Subject {
 public:
  NumaHint(SubjectContext& context, HookForm form)
      : context_(context), form_(form), programs_(context, TracepointType::kRawTp) {}

  Status start() {
    skeleton_.reset(tp_numa_hint::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    programs_.choose_form(skeleton_->obj, form_);
    return programs_.load(skeleton_->skeleton).and_then([&] { return programs_.attach_hooks(); });
  }

  void sample(PassiveSample& sample) override {
    sample.numa_hint = decode(read_counters<tp_numa_hint_stats>(skeleton_->maps.tp_hints));
  }

  void track(int32_t pgid, const OwnCgroup& /*cgroup*/) override {
    put_element(skeleton_->maps.tp_hint_groups, pgid, per_cpu_slots<tp_numa_hint_stats>());
  }

  void untrack(int32_t pgid) override { drop_element(skeleton_->maps.tp_hint_groups, pgid); }

  void read_group(int32_t pgid, GroupIo& group) const override {
    auto counters = per_cpu_slots<tp_numa_hint_stats>();
    if (get_element(skeleton_->maps.tp_hint_groups, pgid, counters))
      group.numa_hint = decode(sum_cpus(counters));
  }

  const Programs& programs() const override { return programs_; }

 private:
  NumaHintStats decode(const tp_numa_hint_stats& stats) const {
    auto result = decode_numa_hint(stats);
    result.source = fmt::format("{} task_numa_fault", hook_form_name(form_));
    return result;
  }

  SubjectContext& context_;
  HookForm form_;
  SkeletonPtr<tp_numa_hint> skeleton_;
  Programs programs_;
};

// Where no program may run at the function: the kernel's own total.
class NumaHintTotal final : public Subject {
 public:
  NumaHintTotal(SubjectContext& context, VmEvents machine)
      : machine_(std::move(machine)), programs_(context, TracepointType::kRawTp) {}

  void sample(PassiveSample& sample) override {
    sample.numa_hint =
        NumaHintStats{.faults = machine_.read().at("numa_hint_faults"), .source = "/proc/vmstat"};
  }

  Programs& programs() { return programs_; }
  const Programs& programs() const override { return programs_; }

 private:
  VmEvents machine_;
  Programs programs_;
};

}  // namespace

StartedSubject start_numa_hint(SubjectContext& context, TracepointType /*type*/) {
  auto hooked = start_with_some_form([&](HookForm form) -> StartedSubject {
    auto subject = std::make_unique<NumaHint>(context, form);
    if (auto status = subject->start(); !status) return tl::unexpected(status.error());
    return subject;
  });
  if (hooked) return hooked;
  auto machine = VmEvents::start({"numa_hint_faults"});
  if (!machine) return tl::unexpected(machine.error());
  auto subject = std::make_unique<NumaHintTotal>(context, std::move(*machine));
  subject->programs().note_shortfall("by group and node: " + hooked.error().message);
  return subject;
}

}  // namespace tierpilot
