#include <unistd.h>

#include "bpf/migration.skel.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

class Migration final : public Subject {
 public:
  Migration(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  // `args` is the number of arguments of this kernel's mm_migrate_pages, 7 or 8.
  Status start(int args) {
    skeleton_.reset(tp_migration::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_event_pages = context_.options.event_pages;
    auto& progs = skeleton_->progs;
    programs_.skip(args == 7 ? progs.tp_migr_end8 : progs.tp_migr_end7);
    return programs_.want_tracepoint(progs.tp_migr_start, 2)
        .and_then([&] {
          return args == 7 ? programs_.want_tracepoint(progs.tp_migr_end7, 7)
                           : programs_.want_tracepoint(progs.tp_migr_end8, 8);
        })
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); });
  }

  void sample(PassiveSample& sample) override {
    auto stats = decode_migration(read_counters<tp_migrate_stats>(skeleton_->maps.tp_migrations),
                                  context_.reasons, context_.modes);
    uint64_t busy_ns = 0;
    for (const auto& [name, reason] : stats.by_reason) busy_ns += reason.busy_ns;
    const uint64_t pages = stats.pages_moved - last_pages_moved_;
    if (pages > 0 && busy_ns > last_busy_ns_) {
      const auto page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
      live_gb_per_s_ =
          static_cast<double>(pages) * page_bytes / static_cast<double>(busy_ns - last_busy_ns_);
    }
    last_pages_moved_ = stats.pages_moved;
    last_busy_ns_ = busy_ns;
    stats.live_gb_per_s = live_gb_per_s_;
    sample.migration = std::move(stats);
  }

  const Programs& programs() const override { return programs_; }

 private:
  SubjectContext& context_;
  SkeletonPtr<tp_migration> skeleton_;
  Programs programs_;
  uint64_t last_pages_moved_ = 0;
  uint64_t last_busy_ns_ = 0;
  std::optional<double> live_gb_per_s_;
};

}  // namespace

// Without BTF only attaching can tell how many arguments the tracepoint has: the newer form first.
StartedSubject start_migration(SubjectContext& context, TracepointType type) {
  std::vector<int> candidates{8, 7};
  if (context.btf) candidates = {context.btf->tracepoint_args("mm_migrate_pages").value_or(8)};
  Status status;
  for (const int args : candidates) {
    auto subject = std::make_unique<Migration>(context, type);
    status = subject->start(args);
    if (status) return subject;
  }
  return tl::unexpected(status.error());
}

}  // namespace tierpilot
