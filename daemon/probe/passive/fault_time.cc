#include "bpf/fault_time.skel.h"
#include "daemon/probe/passive/maps.h"
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
    programs_.choose_form(skeleton_->obj, form);
    return programs_.want_tracepoint(skeleton_->progs.tp_fault_alloc, 4)
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); })
        .and_then([&] { return programs_.attach_hooks(); });
  }

  void sample(PassiveSample& sample) override {
    FaultTimeStats stats{.period = std::max(context_.options.fault_time_period, 1u)};
    for_each_element<uint32_t, tp_hist>(
        skeleton_->maps.tp_fault_ns, [&](uint32_t slot, const tp_hist& hist) {
          auto durations_ns = decode_histogram(hist);
          if (slot == TP_NODES)
            stats.no_page_ns = durations_ns;
          else if (durations_ns.count() > 0)
            stats.by_node_ns.emplace(static_cast<int>(slot), durations_ns);
        });
    sample.fault_time = std::move(stats);
  }

  const Programs& programs() const override { return programs_; }

 private:
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
