#include "bpf/compaction.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

class Compaction final : public Subject {
 public:
  Compaction(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  Status start() {
    skeleton_.reset(tp_compaction::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    auto& progs = skeleton_->progs;
    return programs_.want_tracepoint(progs.tp_compact_begin, 4)
        .and_then([&] { return programs_.want_tracepoint(progs.tp_compact_end, 5); })
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); });
  }

  void sample(PassiveSample& sample) override {
    sample.compaction =
        decode_compaction(read_counters<tp_compact_stats>(skeleton_->maps.tp_compactions));
  }

  void track(int32_t pgid, const OwnCgroup& /*cgroup*/) override {
    put_element(skeleton_->maps.tp_compact_grps, pgid, std::vector<tp_compact_stats>(1));
  }

  void untrack(int32_t pgid) override { drop_element(skeleton_->maps.tp_compact_grps, pgid); }

  void read_group(int32_t pgid, GroupIo& group) const override {
    std::vector<tp_compact_stats> counters(1);
    if (get_element(skeleton_->maps.tp_compact_grps, pgid, counters))
      group.compaction = decode_compaction(counters[0]);
  }

  const Programs& programs() const override { return programs_; }

 private:
  SubjectContext& context_;
  SkeletonPtr<tp_compaction> skeleton_;
  Programs programs_;
};

}  // namespace

StartedSubject start_compaction(SubjectContext& context, TracepointType type) {
  auto subject = std::make_unique<Compaction>(context, type);
  if (auto status = subject->start(); !status) return tl::unexpected(status.error());
  return subject;
}

}  // namespace tierpilot
