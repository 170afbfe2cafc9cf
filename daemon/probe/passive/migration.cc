#include <unistd.h>

#include "bpf/migration.skel.h"
#include "daemon/probe/passive/live_bandwidth.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/migration_nodes.h"

namespace tierpilot {
namespace {

using Nodes = std::pair<int32_t, int32_t>;  // from, to; TP_NO_NODE where not known

void add(MigrationStats::Reason& to, const MigrationStats::Reason& more) {
  to.calls += more.calls;
  to.pages_moved += more.pages_moved;
  to.pages_failed += more.pages_failed;
  to.timed_pages += more.timed_pages;
  to.busy_ns += more.busy_ns;
}

std::optional<double> live(LiveBandwidth& bandwidth, const MigrationStats::Reason& counts) {
  static const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bandwidth.update(counts.timed_pages * page_bytes, counts.busy_ns);
}

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
    return programs_.prepare_tracepoint(progs.tp_migr_start, 2)
        .and_then([&] {
          return args == 7 ? programs_.want_tracepoint(progs.tp_migr_end7, 7)
                           : programs_.want_tracepoint(progs.tp_migr_end8, 8);
        })
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); })
        .and_then([&] { return attach_begin(); });
  }

  void sample(PassiveSample& sample) override {
    auto stats = decode_migration(read_counters<tp_migrate_stats>(skeleton_->maps.tp_migrations),
                                  context_.reasons, context_.modes);
    MigrationStats::Reason total;
    for (const auto& [name, reason] : stats.by_reason) add(total, reason);
    stats.live_gb_per_s = live(bandwidth_, total);
    stats.pairs = sample_pairs();
    stats.pairs_unavailable = pairs_unavailable_;
    sample.migration = std::move(stats);
  }

  const Programs& programs() const override { return programs_; }

 private:
  // Where calls begin: at the function, which has the nodes among its arguments, or else at the
  // tracepoint.
  Status attach_begin() {
    auto nodes = MigrationNodes::start(context_, skeleton_->maps.tp_migrating);
    if (nodes) {
      nodes_ = std::move(*nodes);
      programs_.add_attached(nodes_->attached());
      return {};
    }
    pairs_unavailable_ = nodes.error().message;
    programs_.note_shortfall("by nodes: " + pairs_unavailable_);
    return programs_.attach_tracepoint(skeleton_->progs.tp_migr_start);
  }

  std::vector<MigrationStats::Pair> sample_pairs() {
    std::map<Nodes, MigrationStats::Pair> pairs;
    for_each_element<tp_migrate_pair, tp_migrate_reason>(
        skeleton_->maps.tp_migr_pairs,
        [&](const tp_migrate_pair& key, const tp_migrate_reason& value) {
          auto& pair = pairs[{key.nodes.from, key.nodes.to}];
          const auto counts = decode_migrate_reason(value);
          add(pair.total, counts);
          pair.by_reason[name_of(context_.reasons, key.reason)] = counts;
        });
    std::vector<MigrationStats::Pair> list;
    for (auto& [nodes, pair] : pairs) {
      pair.from_node = decode_node(nodes.first);
      pair.to_node = decode_node(nodes.second);
      pair.live_gb_per_s = live(pair_bandwidths_[nodes], pair.total);
      list.push_back(std::move(pair));
    }
    return list;
  }

  SubjectContext& context_;
  SkeletonPtr<tp_migration> skeleton_;
  Programs programs_;
  std::unique_ptr<MigrationNodes> nodes_;
  std::string pairs_unavailable_;
  LiveBandwidth bandwidth_;
  std::map<Nodes, LiveBandwidth> pair_bandwidths_;
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
