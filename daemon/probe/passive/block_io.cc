#include "bpf/block_io.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

class BlockIo final : public Subject {
 public:
  BlockIo(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  Status start() {
    skeleton_.reset(tp_block_io::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    auto& progs = skeleton_->progs;
    return programs_.want_tracepoint(progs.tp_io_insert, 1)
        .and_then([&] { return programs_.want_tracepoint(progs.tp_io_issue, 1); })
        .and_then([&] { return programs_.want_tracepoint(progs.tp_io_complete, 3); })
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); });
  }

  void sample(PassiveSample& sample) override {
    sample.block_io = decode_block_io(read_counters<tp_io_stats>(skeleton_->maps.tp_io));
  }

  void track(int32_t pgid, const OwnCgroup& cgroup) override {
    const std::vector<tp_io_stats> zeros(1);
    if (!put_element(skeleton_->maps.tp_io_groups, pgid, zeros) || cgroup.id == 0) return;
    if (put_element(skeleton_->maps.tp_io_cgroups, cgroup.id, std::vector{pgid}))
      cgroups_[pgid] = cgroup.id;
  }

  void untrack(int32_t pgid) override {
    drop_element(skeleton_->maps.tp_io_groups, pgid);
    const auto found = cgroups_.find(pgid);
    if (found == cgroups_.end()) return;
    drop_element(skeleton_->maps.tp_io_cgroups, found->second);
    cgroups_.erase(found);
  }

  void read_group(int32_t pgid, GroupIo& group) const override {
    std::vector<tp_io_stats> counters(1);
    if (get_element(skeleton_->maps.tp_io_groups, pgid, counters))
      group.block_io = decode_block_io(counters[0]);
  }

  const Programs& programs() const override { return programs_; }

 private:
  SubjectContext& context_;
  SkeletonPtr<tp_block_io> skeleton_;
  Programs programs_;
  std::map<int32_t, uint64_t> cgroups_;
};

}  // namespace

StartedSubject start_block_io(SubjectContext& context, TracepointType type) {
  auto subject = std::make_unique<BlockIo>(context, type);
  if (auto status = subject->start(); !status) return tl::unexpected(status.error());
  return subject;
}

}  // namespace tierpilot
