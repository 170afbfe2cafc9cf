#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/sysroot.h"
#include "bpf/migration.skel.h"
#include "bpf/pairs.h"
#include "daemon/probe/passive/governor_thread.h"
#include "daemon/probe/passive/live_bandwidth.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/migration_nodes.h"
#include "daemon/probe/passive/owners.h"
#include "daemon/probe/passive/vm_counters.h"

namespace tierpilot {
namespace {

using Counts = tp_migrate_counts;

// Of all CPUs together, what the table by pairs of nodes may take.
constexpr size_t kTableBytes = 16 << 20;

// As in migration_nodes.cc, where calls have no nodes.
constexpr int64_t kTracepointsCallNs = 1000;

// Of /proc/vmstat.
const std::string kMoved = "pgmigrate_success", kFailed = "pgmigrate_fail";

// Node ids below it are told apart: all that the machine can have, if the table is not too large.
uint32_t told_nodes() {
  const auto possible = Sysroot().read_id_list("/sys/devices/system/node/possible");
  uint32_t nodes = possible && !possible->empty() ? static_cast<uint32_t>(possible->back()) + 1 : 1;
  nodes = std::min<uint32_t>(nodes, TP_NODES);
  const auto cpus = static_cast<size_t>(libbpf_num_possible_cpus());
  while (nodes > 1 && tp_pair_count(nodes) * sizeof(Counts) * cpus > kTableBytes) --nodes;
  return nodes;
}

std::optional<double> live(LiveBandwidth& bandwidth, const MigrationCounts::Reason& counts) {
  static const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bandwidth.update(counts.timed_pages * page_bytes, counts.busy_ns);
}

// Pages that moved or failed to.
struct Watched {
  uint64_t seen = 0, all = 0;

  std::optional<double> share_since(const Watched& before) const {
    if (all <= before.all) return std::nullopt;
    const auto part = static_cast<double>(seen - before.seen);
    return std::min(part / static_cast<double>(all - before.all), 1.0);
  }
};

class Migration final : public Subject, private GovernedPrograms {
 public:
  Migration(SubjectContext& context, TracepointType type)
      : context_(context), programs_(context, type) {}

  // `args` is the number of arguments of this kernel's mm_migrate_pages, 7 or 8.
  Status start(int args) {
    skeleton_.reset(tp_migration::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_event_pages = context_.options.event_pages;
    skeleton_->rodata->tp_pair_nodes = nodes_told_;
    bpf_map__set_max_entries(skeleton_->maps.tp_migr_pairs, tp_pair_count(nodes_told_));
    auto& progs = skeleton_->progs;
    programs_.skip(args == 7 ? progs.tp_migr_end8 : progs.tp_migr_end7);
    return programs_.prepare_tracepoint(progs.tp_migr_start, 2)
        .and_then([&] {
          return args == 7 ? programs_.want_tracepoint(progs.tp_migr_end7, 7)
                           : programs_.want_tracepoint(progs.tp_migr_end8, 8);
        })
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_tracepoints(); })
        .and_then([&] { return attach_begin(); })
        .map([&] { govern(); });
  }

  void sample(PassiveSample& sample) override {
    auto stats = decode_migration(read_counters<tp_migrate_stats>(skeleton_->maps.tp_migrations),
                                  decode(table()));
    tell_watched(stats);
    stats.live_gb_per_s = live(bandwidth_, stats.total);
    stats.lost_calls = nodes_ ? nodes_->lost_calls() : skeleton_->bss->tp_lost_calls;
    stats.pairs_unavailable = pairs_unavailable_;
    if (!pairs_unavailable_.empty()) stats.pairs.clear();
    for (auto& pair : stats.pairs)
      pair.live_gb_per_s = live(pair_bandwidths_[{pair.from_node, pair.to_node}], pair.total);
    sample.migration = std::move(stats);
  }

  void track(int32_t pgid, const OwnCgroup& cgroup) override {
    if (!nodes_) return;
    if (!cgroup.charges_memory) {
      if (owners_by_ != TP_OWNERS_MEMORY) tell_owners(TP_OWNERS_CALLER);
      if (track_owner(owner_of_group(pgid))) groups_[pgid] = owner_of_group(pgid);
      return;
    }
    if (!track_owner(cgroup.id)) return;
    groups_[pgid] = cgroup.id;
    tell_owners(TP_OWNERS_MEMORY);
  }

  void untrack(int32_t pgid) override {
    if (const auto group = groups_.extract(pgid)) {
      owners().untrack(group.mapped(), [this] { return used(table()); });
      tracked_.erase(group.mapped());
    }
    if (groups_.empty() && nodes_ && !cgroups_told_) tell_owners(TP_OWNERS_NONE);
  }

  void read_group(int32_t pgid, GroupIo& group) const override {
    const auto found = groups_.find(pgid);
    group.migration_unavailable = pairs_unavailable_;
    if (found == groups_.end()) return;
    const bool by_caller = found->second & TP_OWNER_GROUP;
    if (by_caller && owners_by_ == TP_OWNERS_MEMORY)
      group.migration_unavailable =
          "unavailable: migrations are told apart by memory cgroup, and it has none of its own";
    else
      group.migration = read_owner(found->second);
  }

  void track_cgroup(uint64_t id) override {
    if (!nodes_ || !track_owner(id)) return;
    cgroups_told_ = true;
    tell_owners(TP_OWNERS_MEMORY);
  }

  void read_cgroup(uint64_t id, CgroupMemory& cgroup) const override {
    if (nodes_) cgroup.migration = read_owner(id);
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
    programs_.note_shortfall("by nodes and tasks: " + pairs_unavailable_);
    return programs_.attach_tracepoint(skeleton_->progs.tp_migr_start);
  }

  // From here on the programs are the governor's to attach and detach.
  void govern() {
    const auto& options = context_.options;
    if (options.cpu_share <= 0) return;
    const int64_t measured_ns = nodes_ ? nodes_->call_ns() : kTracepointsCallNs;
    GovernedPrograms& programs = *this;  // which is nobody else's business
    governor_.emplace(programs, CostGovernor::Options{
                                    .cpu_share = options.cpu_share,
                                    .call_ns = options.migration_call_ns.value_or(measured_ns)});
  }

  uint64_t calls() const override {
    return std::atomic_ref(skeleton_->bss->tp_calls).load(std::memory_order_relaxed);
  }

  // Ends before beginnings, or the threads of calls in between would keep their slots.
  Status attach() override {
    drop_calls_in_progress();
    const auto status = programs_.attach_tracepoints().and_then([&] {
      return nodes_ ? nodes_->attach()
                    : programs_.attach_tracepoint(skeleton_->progs.tp_migr_start);
    });
    if (status)
      observe(true);
    else
      detach();
    return status;
  }

  void detach() override {
    observe(false);
    if (nodes_) nodes_->detach();
    programs_.detach();
  }

  void observe(bool on) { std::atomic_ref(skeleton_->data->tp_observing).store(on); }

  // Calls whose end nobody saw. Only while nothing is attached that would begin one.
  void drop_calls_in_progress() {
    const auto sets = read_array<tp_migrate_set>(skeleton_->maps.tp_migrating);
    for (uint32_t i = 0; i < sets.size(); ++i)
      if (std::ranges::any_of(sets[i].tids, [](uint32_t tid) { return tid != 0; }))
        put_element(skeleton_->maps.tp_migrating, i, std::vector<tp_migrate_set>(1));
  }

  // The counters of ours first: what moves meanwhile is not taken for watched.
  Watched watched(const std::vector<Counts>& table) const {
    Watched now;
    for (const auto& counts : table) now.seen += counts.pages_moved + counts.pages_failed;
    if (kernel_)
      for (const auto& [name, pages] : kernel_->read()) now.all += pages;
    return now;
  }

  void tell_watched(MigrationStats& stats) const {
    if (governor_) stats.watched_time_share = governor_->attached_share();
    if (!kernel_) {
      stats.machine_unavailable = kernel_.error().message;
      return;
    }
    const auto& all = kernel_->read();
    stats.machine = {.moved = all.at(kMoved), .failed = all.at(kFailed)};
    stats.watched_pages_share = Watched{stats.total.pages_moved + stats.total.pages_failed,
                                        stats.machine->moved + stats.machine->failed}
                                    .share_since({});
  }

  bool track_owner(uint64_t owner) {
    if (!owners().track(owner)) return false;
    tracked_[owner] = watched(table());
    return true;
  }

  // Of the machine, in the order of bpf/pairs.h.
  std::vector<Counts> table() const {
    const auto copies = read_array<Counts>(skeleton_->maps.tp_migr_pairs);
    std::vector<Counts> counts(tp_pair_count(nodes_told_));
    const size_t cpus = copies.size() / counts.size();
    for (size_t i = 0; i < counts.size() && cpus > 0; ++i)
      counts[i] = sum_cpus(std::span<const Counts>(copies).subspan(i * cpus, cpus));
    return counts;
  }

  MigrationCounts decode(const std::vector<Counts>& table) const {
    return decode_pairs(table, nodes_told_, context_.reasons);
  }

  static std::vector<uint32_t> used(const std::vector<Counts>& table) {
    return used_elements<Counts>(table, [](const Counts& counts) { return counts.calls > 0; });
  }

  Owners<Counts> owners() const {
    return {skeleton_->maps.tp_migr_owners, skeleton_->maps.tp_migr_owned,
            tp_pair_count(nodes_told_)};
  }

  void tell_owners(tp_owners_by by) {
    owners_by_ = by;
    nodes_->tell_owners(by);
  }

  std::optional<OwnedMigrations> read_owner(uint64_t owner) const {
    const auto lost = owners().lost(owner);
    if (!lost) return std::nullopt;
    const auto machine = table();
    OwnedMigrations owned{decode(owners().read(owner, used(machine)))};
    owned.by = owner & TP_OWNER_GROUP ? OwnedMigrations::By::kCaller : OwnedMigrations::By::kMemory;
    owned.lost_calls = *lost;
    owned.watched_pages_share = watched(machine).share_since(tracked_.at(owner));
    return owned;
  }

  using NodePair = std::pair<std::optional<int>, std::optional<int>>;

  SubjectContext& context_;
  const uint32_t nodes_told_ = told_nodes();
  SkeletonPtr<tp_migration> skeleton_;
  Programs programs_;
  std::unique_ptr<MigrationNodes> nodes_;
  std::string pairs_unavailable_;
  tp_owners_by owners_by_ = TP_OWNERS_NONE;
  std::map<int32_t, uint64_t> groups_;  // their owners
  bool cgroups_told_ = false;
  std::map<uint64_t, Watched> tracked_;  // owners, and how much had moved then
  mutable Result<VmEvents> kernel_ = VmEvents::start({kMoved, kFailed});
  LiveBandwidth bandwidth_;
  std::map<NodePair, LiveBandwidth> pair_bandwidths_;
  std::optional<GovernorThread> governor_;  // last: its thread uses what is above
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
