#include "bpf/reclaim.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

class Reclaim final : public Subject {
 public:
  Reclaim(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  Status start() {
    skeleton_.reset(tp_reclaim::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    skeleton_->rodata->tp_event_ns = context_.options.event_reclaim_ns;
    auto& progs = skeleton_->progs;
    return programs_.want_tracepoint(progs.tp_direct_begin, 2)
        .and_then([&] { return programs_.want_tracepoint(progs.tp_direct_end, 1); })
        .and_then([&] {
          // Kernels without memory cgroups have no such tracepoints.
          programs_.like_tracepoint(progs.tp_memcg_begin, 2);
          programs_.like_tracepoint(progs.tp_memcg_end, 1);
          programs_.like_tracepoint(progs.tp_kswapd_wake, 3);
          return programs_.load(skeleton_->skeleton);
        })
        .and_then([&] { return programs_.attach_tracepoints(); });
  }

  void sample(PassiveSample& sample) override {
    sample.reclaim = decode_reclaim(read_counters<tp_reclaim_stats>(skeleton_->maps.tp_reclaims));
  }

  void track(int32_t pgid, const OwnCgroup& /*cgroup*/) override {
    put_element(skeleton_->maps.tp_reclaim_grps, pgid, std::vector<tp_reclaim_stats>(1));
  }

  void untrack(int32_t pgid) override { drop_element(skeleton_->maps.tp_reclaim_grps, pgid); }

  void read_group(int32_t pgid, GroupIo& group) const override {
    std::vector<tp_reclaim_stats> counters(1);
    if (get_element(skeleton_->maps.tp_reclaim_grps, pgid, counters))
      group.reclaim = decode_reclaim(counters[0]);
  }

  const Programs& programs() const override { return programs_; }

 private:
  SubjectContext& context_;
  SkeletonPtr<tp_reclaim> skeleton_;
  Programs programs_;
};

}  // namespace

StartedSubject start_reclaim(SubjectContext& context, TracepointType type) {
  auto subject = std::make_unique<Reclaim>(context, type);
  if (auto status = subject->start(); !status) return tl::unexpected(status.error());
  return subject;
}

}  // namespace tierpilot
