#include "tests/dst/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace tierpilot::dst {
namespace {

constexpr int64_t kFaultsEndNs = 28 * kSecond;
constexpr int64_t kGotOverNs = 10 * kSecond;  // a lease, and the longest wait to connect anew
constexpr int64_t kQuietNs = 200 * kSecond;   // all that was submitted has ended long before
constexpr int64_t kSettleNs = 12 * kSecond;
constexpr int64_t kCopiedNs = 100 * kSecond;  // some are tried three times
constexpr int64_t kLastNs = 60 * kSecond;     // whatever was kept for others is free

}  // namespace

World::World(uint64_t seed, const Plan& plan, const WorldOptions& options)
    : options_(options),
      seed_(seed),
      disk_(seed),
      judge_(options.held),
      network_(loop_, seed),
      coordinator_(
          (Disk::use(&disk_), std::make_unique<Coordinator>(Coordinator::Surroundings{
                                  loop_, disk_, judge_, network_, options.directory, seed}))),
      losses_(loop_, judge_, nodes_, *coordinator_),
      room_checks_(loop_, judge_, nodes_, *coordinator_),
      client_({loop_, judge_, *coordinator_, seed,
               [this](const std::string& node, const DatasetId& id) -> const Digest* {
                 const auto* stored = find(node, id);
                 return stored ? &stored->content : nullptr;
               },
               [this](const TaskSpec& spec) {
                 return room_checks_.knows_all_nodes() && room_checks_.never_fits(spec);
               },
               [this](const TaskSpec& spec) { return room_checks_.always_fits(spec); }}),
      has_shares_(shares(seed, options.included)),
      swaps_(swaps(seed, options.included)) {
  judge_.promises().is_undisturbed_since = [this](int64_t since_ns) {
    return disturbed_until_ns_ < since_ns && are_estimates_right(seed_);
  };
  judge_.now_ns = [this] { return loop_.now_ns(); };
  judge_.on_published = [this](const std::string& dataset, uint64_t version, Digest content) {
    check_published(dataset, version, content);
  };
  if (options_.tell) judge_.on_tell = [this](const std::string& what) { tell(what); };
  for (int i = 0; i < kNodes; ++i)
    nodes_.push_back(std::make_unique<Node>(Node::Surroundings{
        loop_, judge_, network_, *coordinator_, i, seed, options.keeps_old_home,
        options.notices_pauses, options.tells_kept_ends,
        [this](int reader, const std::string& address, const DatasetId& id) -> const Stored* {
          const int source = address.back() - '1';
          const bool there =
              nodes_[static_cast<size_t>(source)]->answers() && network_.reaches(reader, source);
          if (!there) return nullptr;
          const auto* stored = find(address, id);
          const bool is_read =
              stored && (stored->fast || !nodes_[static_cast<size_t>(source)]->disk_fails());
          return is_read ? stored : nullptr;
        },
        [this](const std::string& address, const DatasetId& id) {
          nodes_[static_cast<size_t>(address.back() - '1')]->suspect(id);
        },
        [this](const DatasetId& id) { losses_.damage_noticed(id); },
        shared_units_of(seed, i, options.included), swap_tiers_of(seed, i, options.included)}));
  judge_.processes().is_told = [this](uint64_t task) { return judge_.has_ended(task); };
  judge_.processes().is_leased_since = [this](int node, int64_t since_ns) {
    return nodes_[static_cast<size_t>(node)]->is_leased_since(since_ns);
  };
  coordinator_->start();
  for (const auto& action : plan)
    loop_.after(action.at_ns, nullptr, [this, action] { act(action); });
}

World::~World() {
  coordinator_.reset();
}

void World::tell(const std::string& what) {
  if (options_.tell)
    options_.tell(fmt::format("{:8.3f} s    {}", static_cast<double>(loop_.now_ns()) / 1e9, what));
}

const Stored* World::find(const std::string& node, const DatasetId& id) const {
  const auto& shelf = nodes_[static_cast<size_t>(node.back() - '1')]->shelf();
  const auto found = shelf.find(id);
  return found == shelf.end() ? nullptr : &found->second;
}

void World::act(const Action& action) {
  if (options_.tell) options_.tell(describe(action));
  disturbed_by(action);
  switch (action.kind) {
    case Kind::kSubmit:
      return client_.submit(action.number, make_job(seed_, action.number, options_.included));
    case Kind::kAddDataset:
      return client_.add_dataset(action.number);
    case Kind::kRemoveDataset:
      return client_.remove_dataset(action.number);
    case Kind::kCancel:
      return client_.cancel(action.number);
    default:
      return is_node_fault(action.kind) ? act_on_node(action) : act_on_coordinator(action);
  }
}

void World::disturbed_by(const Action& action) {
  const bool disturbs = action.kind >= Kind::kKillCoordinator && action.kind != Kind::kStepWall &&
                        action.kind != Kind::kCheckDatasets && action.kind != Kind::kEvict &&
                        action.kind != Kind::kFailUnit && action.kind != Kind::kRemoveCheckpoints;
  if (!disturbs) return;
  // Some wait for their moment.
  const bool is_trap = action.kind == Kind::kCutInCommit || action.kind == Kind::kKillInCommit ||
                       action.kind == Kind::kRebootInCommit || action.kind == Kind::kKillAtEnd;
  const int64_t over_ns = is_trap ? kFaultsEndNs : loop_.now_ns() + action.lasts_ns;
  disturbed_until_ns_ = std::max(disturbed_until_ns_, over_ns + kGotOverNs);
}

void World::act_on_coordinator(const Action& action) {
  auto& coordinator = *coordinator_;
  switch (action.kind) {
    case Kind::kKillCoordinator:
      return coordinator.kill(Disk::End::kKilled, action.lasts_ns);
    case Kind::kCutCoordinator:
      return coordinator.kill(Disk::End::kPowerCut, action.lasts_ns);
    case Kind::kCutInCommit:
      return disk_.stop_after(static_cast<int>(action.number));
    case Kind::kStopCoordinator:
      return coordinator.stop(action.lasts_ns);
    case Kind::kPauseCoordinator:
      return coordinator.pause(action.lasts_ns);
    case Kind::kFreezeCoordinator:
      return coordinator.freeze(action.lasts_ns);
    case Kind::kDowngradeCoordinator:
      return coordinator.downgrade(action.lasts_ns);
    case Kind::kCheckDatasets:
      return client_.check_datasets(action.number == 1);
    case Kind::kRemoveCheckpoints:
      return client_.remove_checkpoints();
    case Kind::kFullDisk:
      disk_.set_full(true);
      return loop_.after(action.lasts_ns, nullptr, [this] { disk_.set_full(false); });
    case Kind::kFailDisk:
      disk_.set_failing(static_cast<double>(action.number) / 10);
      return loop_.after(action.lasts_ns, nullptr, [this] { disk_.set_failing(0); });
    case Kind::kSlowDisk:
      coordinator.set_slow_disk(true);
      return loop_.after(action.lasts_ns, nullptr, [this] { coordinator_->set_slow_disk(false); });
    default:
      // Days, either way.
      return coordinator.set_clock_by(static_cast<int64_t>(action.number % 400'000'000) -
                                      200'000'000);
  }
}

void World::act_on_node(const Action& action) {
  auto& node = *nodes_[static_cast<size_t>(action.node)];
  nodes_are_well_ &= action.kind == Kind::kEvict || action.kind == Kind::kFailUnit;
  switch (action.kind) {
    case Kind::kKillDaemon:
      return node.kill(action.lasts_ns);
    case Kind::kReboot:
      return node.reboot(action.lasts_ns);
    case Kind::kStopDaemon:
      return node.stop(action.lasts_ns);
    case Kind::kPauseDaemon:
      return node.pause(action.lasts_ns);
    case Kind::kPartition:
      for (const Way way : {Way::kUp, Way::kDown})
        if (action.number & (way == Way::kUp ? 1U : 2U))
          network_.cut(action.node, way, loop_.now_ns() + action.lasts_ns);
      return;
    case Kind::kEvict:
      return node.evict();
    case Kind::kRefuseStarts:
      return node.refuse_starts(action.lasts_ns);
    case Kind::kFreeze:
      return node.freeze(action.lasts_ns);
    case Kind::kChangeVersion:
      return node.change_version(static_cast<Version>(action.number), action.lasts_ns);
    case Kind::kDamage:
      return node.damage(action.number);
    case Kind::kLoseDisk:
      return losses_.lose_disk(node, action.lasts_ns);
    case Kind::kKillAtEnd:
      return node.kill_at_end(action.lasts_ns);
    case Kind::kFailUnit:
      return node.fail_unit(action.number);
    case Kind::kFillNodeDisk:
      return node.fill_disk(action.lasts_ns);
    case Kind::kFailNodeDisk:
      return node.fail_disk(static_cast<double>(action.number) / 10, action.lasts_ns);
    case Kind::kFailGpu:
      return node.fail_gpu(action.number, 0);
    case Kind::kLoseGpu:
      return node.fail_gpu(action.number, action.lasts_ns);
    case Kind::kTakeSwapRoom:
      return node.take_swap_room(action.number, action.lasts_ns);
    case Kind::kReset:
      return network_.reset(action.node);
    default:
      return node.kill_in_commit(action.number, action.kind == Kind::kRebootInCommit,
                                 action.lasts_ns);
  }
}

void World::heal() {
  tell("no faults from now on");
  if (disturbed_until_ns_ > 0)
    disturbed_until_ns_ = std::max(disturbed_until_ns_, loop_.now_ns() + kGotOverNs);
  network_.heal();
  disk_.set_full(false);
  disk_.set_failing(0);
  disk_.stop_after(-1);
  coordinator_->set_slow_disk(false);
  for (auto& node : nodes_) node->heal();
  cancel_users_of_lost();
}

void World::cancel_users_of_lost() {
  client_.cancel_users_of_lost();
  client_.cancel_those([this](const TaskSpec& spec) { return room_checks_.never_fits(spec); });
  loop_.after(5 * kSecond, nullptr, [this] {
    losses_.give_up_damaged();
    cancel_users_of_lost();
  });
}

bool World::run_until(int64_t until_ns, const std::function<bool()>& done) {
  while (!done()) {
    if (steps_ >= options_.most_steps) {
      judge_.violated("stuck", fmt::format("{} steps, and no end", steps_));
      return false;
    }
    try {
      if (!loop_.step(until_ns)) return false;
    } catch (const std::exception& e) {
      judge_.violated("crash", e.what());
      return false;
    }
    ++steps_;
    check_step();
    if (judge_.verdict()) return false;
  }
  return true;
}

std::optional<Violation> World::run() {
  run_until(kFaultsEndNs, [] { return false; });
  if (judge_.verdict()) return judge_.verdict();
  heal();
  if (!run_until(kQuietNs, [this] { return all_ended(); }) && !judge_.verdict()) check_quiet();
  if (!judge_.verdict()) run_until(loop_.now_ns() + kSettleNs, [] { return false; });
  if (!judge_.verdict())
    run_until(loop_.now_ns() + kCopiedNs,
              [this] { return copies_are_enough() && left_over().empty(); });
  if (!judge_.verdict()) check_quiet();
  if (!judge_.verdict() && options_.included.contains("shares")) {
    std::vector<SharedUnits> shared;
    std::vector<uint64_t> swap_bytes;
    for (const auto& node : nodes_) {
      shared.push_back(node->shared_units());
      swap_bytes.push_back(node->most_swap_bytes());
    }
    client_.ask_for_all(shared, swap_bytes);
    if (!run_until(loop_.now_ns() + kLastNs, [this] { return all_ended(); }) && !judge_.verdict())
      check_quiet();
  }
  return judge_.verdict();
}

bool World::all_ended() const {
  if (!coordinator_->up() || client_.unanswered() > 0) return false;
  if (!coordinator_->core().state.tasks.all().empty()) return false;
  coordinator_->look_at_all();
  return std::all_of(judge_.tasks().begin(), judge_.tasks().end(),
                     [&](const auto& task) { return judge_.has_ended(task.first); });
}

}  // namespace tierpilot::dst
