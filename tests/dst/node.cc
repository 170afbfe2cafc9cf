#include "tests/dst/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::dst {
namespace {

constexpr uint64_t kAllTenths = 10;

}  // namespace

Node::Node(Surroundings surroundings)
    : at_(std::move(surroundings)),
      random_(at_.seed, fmt::format("node {}", at_.node)),
      errors_(at_.seed, fmt::format("node errors {}", at_.node)),
      clock_(at_.loop, 1 + static_cast<double>(random_.between(-1000, 1000)) * 1e-6),
      machine_(std::make_shared<Life>()) {
  start_later(random_.between(0, 300 * kMs));
}

void Node::start_later(int64_t down_ns) {
  if (std::exchange(starting_, true)) return;
  at_.loop.after(std::max(down_ns, clock_.still_ns()), nullptr, [this] {
    starting_ = false;
    if (clock_.still_ns() > 0) return start_later(0);
    // It waits until no process of the one before it is left.
    const bool busy = !gone_.empty() && !gone_.back()->warden().idle();
    busy ? start_later(10 * kMs) : start();
  });
}

void Node::start() {
  if (up()) return;
  daemon_ = std::make_unique<Daemon>(Daemon::Surroundings{
      at_.loop,
      clock_,
      at_.judge,
      at_.network,
      at_.coordinator,
      random_,
      shelf_,
      ends_,
      at_.node,
      random_.next(),
      instances_,
      machine_,
      at_.keeps_old_home,
      at_.notices_pauses,
      at_.tells_kept_ends,
      version_,
      [this] { return at_.loop.now_ns() < refuses_until_ns_; },
      [this](const std::string& address, const DatasetId& id) {
        return at_.remote(at_.node, address, id);
      },
      at_.suspect,
      at_.lost,
      [this](int step) { at_commit_step(step); },
      [this] { return disk_fails(); },
      [this] { return at_.loop.now_ns() < disk_full_until_ns_; },
      [this](const DatasetId& id, const Stored& stored) { half_synced_[id] = stored; },
      [this](int64_t deadline_ns) { leased(deadline_ns); },
      [this] {
        if (const auto down_ns = std::exchange(killed_at_end_ns_, std::nullopt)) kill(*down_ns);
      },
      at_.shared_units,
      [this](const std::string& gpu) {
        const auto lost = gpu_lost_until_ns_.find(gpu);
        return lost != gpu_lost_until_ns_.end() && at_.loop.now_ns() < lost->second;
      },
      swap_tiers_});
  least_swap_bytes_ =
      std::min(least_swap_bytes_,
               program_of(version_).can(kSwapRoomFeature) ? offered_bytes(swap_tiers_) : 0);
  daemon_->begin();
}

void Node::kill(int64_t down_ns) {
  if (!up()) return;
  daemon_->die(true);
  gone_.push_back(std::move(daemon_));
  start_later(down_ns);
}

void Node::reboot(int64_t down_ns) {
  if (up()) {
    daemon_->die(false);
    gone_.push_back(std::move(daemon_));
  } else if (!gone_.empty()) {
    gone_.back()->warden().power_cut();
  }
  machine_->alive = false;
  machine_ = std::make_shared<Life>();
  clock_.reboot();
  instances_.clear();
  lease_ns_ = 0;
  unleased_until_ns_ = at_.loop.now_ns();
  at_.judge.promises().node_stood_still(at_.node, at_.loop.now_ns());
  for (auto& [id, stored] : shelf_) stored.fast = false;
  std::erase_if(shelf_, [](const auto& item) { return !item.second.slow; });
  for (auto& [id, stored] : std::exchange(half_synced_, {})) {
    stored.fast = false;
    if (errors_.chance(0.5) && shelf_.emplace(id, stored).second) came_back_.insert(id);
  }
  start_later(down_ns);
}

void Node::lose_disk(int64_t down_ns) {
  reboot(down_ns);
  shelf_.clear();
  ends_.clear();
}

void Node::stop(int64_t down_ns) {
  if (!up()) return;
  auto* stopping = daemon_.get();
  stopping->on_stopped = [this, stopping, down_ns] {
    if (daemon_.get() == stopping) kill(down_ns);
  };
  at_.loop.after(0, stopping->life(), [stopping] { stopping->stop(); });
}

void Node::pause(int64_t ns) {
  if (up()) daemon_->life()->stop_until(at_.loop.now_ns() + ns);
}

void Node::freeze(int64_t ns) {
  // One pause after another.
  if (clock_.still_ns() > 0) return;
  clock_.stand_still(ns);
  machine_->stop_until(at_.loop.now_ns() + ns);
  pause(ns);
  constexpr int64_t kNoticedNs = Warden::kNoticeNs + Warden::kKillNs;
  unleased_until_ns_ = at_.loop.now_ns() + ns + kNoticedNs;
  at_.judge.processes().unsure(at_.node, unleased_until_ns_);
  at_.judge.promises().node_stood_still(at_.node, at_.loop.now_ns());
  if (daemon_) daemon_->warden().machine_paused(ns);
  if (!gone_.empty()) gone_.back()->warden().machine_paused(ns);
}

void Node::leased(int64_t deadline_ns) {
  if (clock_.boot_ns() >= lease_ns_)
    unleased_until_ns_ = std::max(unleased_until_ns_, at_.loop.now_ns());
  lease_ns_ = std::max(lease_ns_, deadline_ns);
}

void Node::change_version(Version version, int64_t lasts_ns) {
  version_ = version;
  kill(200 * kMs);
  if (version == Version::kCurrent) return;
  at_.loop.after(lasts_ns, nullptr, [this] { change_version(Version::kCurrent, 0); });
}

void Node::take_swap_room(uint64_t tenths, int64_t lasts_ns) {
  swap_tiers_ = less_of(at_.swap_tiers, tenths);
  kill(200 * kMs);
  if (tenths == kAllTenths) return;
  at_.loop.after(lasts_ns, nullptr, [this] { take_swap_room(kAllTenths, 0); });
}

void Node::damage(uint64_t which) {
  std::vector<DatasetId> on_disk;
  for (const auto& [id, stored] : shelf_)
    if (stored.slow) on_disk.push_back(id);
  if (on_disk.empty()) return;
  const auto& id = on_disk[which % on_disk.size()];
  shelf_.at(id).rotten = true;
  at_.judge.saved_work().spoil(id.name);
}

void Node::suspect(const DatasetId& id) {
  if (answers()) daemon_->pool().verify(id);
}

void Node::evict() {
  if (up()) daemon_->pool().evict();
}

void Node::kill_in_commit(uint64_t step, bool reboots, int64_t down_ns) {
  trap_ = {static_cast<int>(step), reboots, down_ns};
}

void Node::at_commit_step(int step) {
  if (step != trap_.step) return;
  const Trap trap = std::exchange(trap_, {});
  trap.reboots ? reboot(trap.down_ns) : kill(trap.down_ns);
}

void Node::fail_unit(uint64_t number) {
  if (!up()) return;
  const auto unit = fmt::format("cpu/{}", number);
  const auto kind = fmt::format("fault {}", ++unit_faults_);
  at_.judge.unit_failed(name() + "/" + unit, kind);
  daemon_->fail_unit({unit, kind, "simulated"});
}

void Node::fail_gpu(uint64_t number, int64_t lost_ns) {
  std::vector<uint32_t> gpus;
  for (uint32_t unit = 0; unit < at_.shared_units.size(); ++unit)
    if (!at_.shared_units[unit].gpu.empty()) gpus.push_back(unit);
  if (gpus.empty()) return;
  const uint32_t unit = gpus[number % gpus.size()];
  gpu_lost_until_ns_[at_.shared_units[unit].gpu] = at_.loop.now_ns() + lost_ns;
  if (up()) daemon_->warden().gpu_failed(unit, "GPU " + at_.shared_units[unit].gpu + " failed");
}

void Node::fail_disk(double share, int64_t ns) {
  disk_errors_ = share;
  disk_fails_until_ns_ = at_.loop.now_ns() + ns;
}

void Node::heal() {
  disk_fails_until_ns_ = 0;
  disk_full_until_ns_ = 0;
  refuses_until_ns_ = 0;
  gpu_lost_until_ns_.clear();
  killed_at_end_ns_.reset();
  trap_ = {};
  if (offered_bytes(swap_tiers_) < most_swap_bytes()) take_swap_room(kAllTenths, 0);
  if (version_ != Version::kCurrent) change_version(Version::kCurrent, 0);
}

}  // namespace tierpilot::dst
