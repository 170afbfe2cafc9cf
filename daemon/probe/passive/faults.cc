#include <bpf/bpf.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <span>

#include "bpf/faults.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"
#include "daemon/probe/passive/vm_counters.h"

namespace tierpilot {
namespace {

tp_fault_stats operator+(const tp_fault_stats& a, const tp_fault_stats& b) {
  return {.faults = a.faults + b.faults, .major = a.major + b.major};
}

// Calls `use` for what the walk over all tasks writes. The kernel hands out whole records only.
void walk_tasks(int link_fd, const std::function<void(const tp_fault_record&)>& use) {
  const UniqueFd walk(bpf_iter_create(link_fd));
  if (!walk) return;
  std::array<tp_fault_record, 256> records;
  for (;;) {
    const ssize_t size = ::read(walk.get(), records.data(), sizeof records);
    // EAGAIN: the kernel asks for another call after a long stretch of tasks of no group.
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) return;
    const auto count = static_cast<size_t>(size) / sizeof(tp_fault_record);
    for (const auto& record : std::span(records).first(count)) use(record);
  }
}

// The machine's by /proc/vmstat, those of groups by the kernel's counters of each task.
class Faults final : public Subject {
 public:
  Faults(SubjectContext& context, TracepointType type, VmEvents machine)
      : context_(context), machine_(std::move(machine)), programs_(context, type) {}

  Status start_groups() {
    skeleton_.reset(tp_faults::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    auto& progs = skeleton_->progs;
    // The second argument came in 6.16.
    const auto args =
        context_.btf ? context_.btf->tracepoint_args("sched_process_exit") : std::nullopt;
    return programs_.want_tracepoint(progs.tp_fault_exit, args == 2 ? 2 : 1)
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); })
        .and_then([&] { return programs_.attach_iterator(progs.tp_fault_walk); })
        .map([&](int link_fd) { walk_link_fd_ = link_fd; });
  }

  void sample(PassiveSample& sample) override {
    const auto& seen = machine_.read();
    sample.faults = FaultStats{.faults = seen.at("pgfault"), .major = seen.at("pgmajfault")};
  }

  void track(int32_t pgid, const OwnCgroup& /*cgroup*/) override {
    if (walk_link_fd_ < 0) return;
    if (put_element(skeleton_->maps.tp_fault_groups, pgid, std::vector<tp_fault_stats>(1)))
      before_[pgid] = living(pgid);
  }

  void untrack(int32_t pgid) override {
    if (before_.erase(pgid) > 0) drop_element(skeleton_->maps.tp_fault_groups, pgid);
  }

  void read_group(int32_t pgid, GroupIo& group) const override {
    const auto before = before_.find(pgid);
    if (before == before_.end()) return;
    // The dead first: a task that dies between is missing until the next reading, and was counted
    // twice in the other order.
    std::vector<tp_fault_stats> dead(1);
    if (!get_element(skeleton_->maps.tp_fault_groups, pgid, dead)) return;
    const auto total = living(pgid) + dead[0];
    group.faults =
        FaultStats{.faults = total.faults - std::min(total.faults, before->second.faults),
                   .major = total.major - std::min(total.major, before->second.major)};
  }

  Programs& programs() { return programs_; }
  const Programs& programs() const override { return programs_; }

 private:
  tp_fault_stats living(int32_t pgid) const {
    tp_fault_stats total{};
    walk_tasks(walk_link_fd_, [&](const tp_fault_record& record) {
      if (record.pgid == pgid) total = total + record.stats;
    });
    return total;
  }

  SubjectContext& context_;
  VmEvents machine_;
  SkeletonPtr<tp_faults> skeleton_;
  Programs programs_;
  int walk_link_fd_ = -1;
  std::map<int32_t, tp_fault_stats> before_;  // of living tasks when their group was tracked
};

}  // namespace

StartedSubject start_faults(SubjectContext& context, TracepointType type) {
  auto machine = VmEvents::start({"pgfault", "pgmajfault"});
  if (!machine) return tl::unexpected(machine.error());
  auto subject = std::make_unique<Faults>(context, type, std::move(*machine));
  const auto groups = subject->start_groups();
  // The raw form follows.
  if (!groups && type == TracepointType::kTpBtf) return tl::unexpected(groups.error());
  if (!groups) subject->programs().note_shortfall("of groups: " + groups.error().message);
  return subject;
}

}  // namespace tierpilot
