#include "daemon/agent/gpus/gpu_shares.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/log.h"
#include "daemon/agent/gpus/server_use.h"

namespace tierpilot::agent {
namespace {

constexpr uint32_t kWholeShare = 1000;
constexpr int64_t kSettlePatience_ns = 10'000'000'000;
constexpr int64_t kSettleStepMs = 500;

}  // namespace

const GpuShares::Unit* GpuShares::unit(const std::string& gpu) const {
  const auto found = std::find_if(units_.begin(), units_.end(),
                                  [&](const Unit& known) { return known.gpu == gpu; });
  return found == units_.end() ? nullptr : &*found;
}

const GpuShares::Unit* GpuShares::mps_unit(const std::string& gpu) const {
  const auto* known = unit(gpu);
  return known && !known->mps_folder.empty() ? known : nullptr;
}

// What it may come to have while it runs: MPS asks each client once, when it begins.
static uint32_t begins_with(const UnitPart& part) {
  return std::clamp(std::max(part.milli, part.most_milli), 1u, kWholeShare);
}

std::vector<std::pair<std::string, std::string>> GpuShares::environment(
    const std::string& gpu, const UnitPart& part) const {
  std::vector<std::pair<std::string, std::string>> env{{"CUDA_VISIBLE_DEVICES", gpu}};
  if (part.memory_bytes > 0)
    env.emplace_back("TIERPILOT_GPU_MEMORY", std::to_string(part.memory_bytes));
  const auto* known = mps_unit(gpu);
  if (!known) return env;
  auto client = MpsControl::client_env(known->mps_folder);
  env.insert(env.end(), client.begin(), client.end());
  env.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                   std::to_string(mps_part(begins_with(part), known->multiprocessors).percent));
  if (part.memory_bytes > 0)  // of the only device that it sees
    env.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                     fmt::format("0={}M", std::max<uint64_t>(1, part.memory_bytes >> 20)));
  return env;
}

void GpuShares::launched(AttemptId attempt, const std::string& gpu, const UnitPart& part) {
  auto& running = running_[attempt];
  running.attempt = attempt;
  running.gpu = gpu;
  running.part = part;
  if (const auto* known = mps_unit(gpu)) {
    running.began_milli = begins_with(part);
    running.clients_milli = mps_part(running.began_milli, known->multiprocessors).milli;
  }
  say_idle(gpu);
}

void GpuShares::started(AttemptId attempt, pid_t leader) {
  const auto found = running_.find(attempt);
  if (found != running_.end()) found->second.processes = TaskProcesses(executor_, leader);
}

void GpuShares::set(AttemptId attempt, uint32_t milli) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  found->second.part.milli = milli;
  join_turns(found->second);
  take_turns();
}

void GpuShares::let_go(AttemptId attempt) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  found->second.ending = true;
  leave_turns(found->second);
  if (found->second.stands) stand(found->second, false);
  take_turns();
}

void GpuShares::settle(AttemptId attempt, std::function<void()> done) {
  const auto found = running_.find(attempt);
  const auto* known = found == running_.end() ? nullptr : unit(found->second.gpu);
  if (!known || found->second.end) return done();
  const uint64_t answer = hooks_.ask(known->gpu);
  if (answer == 0) return done();
  waiting_.push_back({known->gpu, answer, clock_.boot_ns() + kSettlePatience_ns, std::move(done)});
  watch_patience();
}

void GpuShares::watch_patience() {
  if (std::exchange(watching_patience_, true)) return;
  loop_.detach(loop_.after_ms(kSettleStepMs).then([weak = std::weak_ptr(self_)] {
    const auto self = weak.lock();
    if (!self) return;
    auto& shares = **self;
    shares.watching_patience_ = false;
    shares.settle_those([now_ns = shares.clock_.boot_ns()](const Waiting& one) {
      if (now_ns < one.due_ns) return false;
      spdlog::warn("GPU {}: does not say in time why an attempt ended", one.gpu);
      return true;
    });
    if (!shares.waiting_.empty()) shares.watch_patience();
  }),
               "looks at GPUs");
}

void GpuShares::settle_those(const std::function<bool(const Waiting&)>& settled) {
  // What they call may come back here.
  auto waiting = std::exchange(waiting_, {});
  for (auto& one : waiting)
    if (settled(one))
      one.done();
    else
      waiting_.push_back(std::move(one));
}

size_t GpuShares::count_on(const std::string& gpu) const {
  return static_cast<size_t>(std::count_if(running_.begin(), running_.end(),
                                           [&](const auto& one) { return one.second.gpu == gpu; }));
}

void GpuShares::see_fault(const GpuLook& look) {
  if (look.mps_asked_ns == 0) return;
  auto& left_ns = left_ns_[look.gpu];
  // A server that nobody computed by may have ended by itself.
  const bool missed =
      look.mps_gone && std::any_of(running_.begin(), running_.end(), [&](auto& one) {
        return one.second.gpu == look.gpu && one.second.on_gpu;
      });
  if (look.mps_faulted || missed) {
    ++server_faults_;
    const auto on_it = count_on(look.gpu) + left_ns.size();
    spdlog::warn(
        "GPU {}: {} with {} tasks on it", look.gpu,
        look.mps_faulted ? "a client of its MPS server has failed" : "its MPS server has gone",
        on_it);
    // Who was alone as a client failed has only itself to blame.
    if (!look.mps_faulted)
      end_all(look.gpu, fmt::format("the MPS server of GPU {} has gone", look.gpu));
    else if (on_it > 1)
      end_all(look.gpu, fmt::format("a client of the MPS server of GPU {} failed, and with it "
                                    "all that compute there",
                                    look.gpu));
  }
  std::erase_if(left_ns, [&](int64_t at_ns) { return at_ns < look.mps_asked_ns; });
}

std::optional<GpuEnd> GpuShares::ended(AttemptId attempt) {
  auto found = running_.extract(attempt);
  if (!found) return std::nullopt;
  if (mps_unit(found.mapped().gpu)) left_ns_[found.mapped().gpu].push_back(clock_.boot_ns());
  leave_turns(found.mapped());
  take_turns();
  say_idle(found.mapped().gpu);
  return std::move(found.mapped().end);
}

void GpuShares::say_idle(const std::string& gpu) {
  hooks_.idle(gpu, count_on(gpu) == 0);
}

uint64_t GpuShares::used_ns(AttemptId attempt) const {
  const auto found = running_.find(attempt);
  return found == running_.end() ? 0 : found->second.used_ns;
}

uint64_t GpuShares::stood_ns(AttemptId attempt) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return 0;
  count_standing(found->second);
  return found->second.stood_ns;
}

void GpuShares::count_standing(Running& running) const {
  const int64_t now_ns = clock_.boot_ns();
  if (running.stands) running.stood_ns += static_cast<uint64_t>(now_ns - running.stands_since_ns);
  running.stands_since_ns = now_ns;
}

void GpuShares::stand(Running& running, bool still) {
  count_standing(running);
  running.stands = still;
  if (still) ++stops_;
  executor_.stand_still(running.attempt.task, running.attempt.attempt, still);
}

// The driver may tell of servers only what their clients used.
std::map<AttemptId, int64_t> GpuShares::use_of(const GpuLook& look) {
  std::map<AttemptId, int64_t> use;
  std::vector<ServerClient> clients;
  for (auto& [attempt, running] : running_) {
    if (running.gpu != look.gpu) continue;
    clients.push_back({running.part.milli, running.clients_milli});
    auto& used_ns = use[attempt];
    for (const pid_t process : running.processes.list(executor_))
      if (const auto busy = look.busy_ns.find(process); busy != look.busy_ns.end())
        used_ns += busy->second * running.clients_milli / kWholeShare;
  }
  for (const pid_t server : look.mps_servers)
    if (const auto busy = look.busy_ns.find(server); busy != look.busy_ns.end()) {
      const auto each = server_use(busy->second, clients);
      for (auto own = each.begin(); auto& [attempt, used_ns] : use) used_ns += *own++;
    }
  return use;
}

void GpuShares::looked(const GpuLook& look) {
  const auto* known = unit(look.gpu);
  if (!known) return;
  if (auto& told = unmeasured_[look.gpu]; told != look.unmeasured) {
    told = look.unmeasured;
    if (!told.empty())
      spdlog::warn(
          "GPU {}: what tasks use of it is not known, their turns are by the clock alone: {}",
          look.gpu, told);
  }
  control_starts_ += look.mps_begun ? 1 : 0;
  if (look.mps_begun)
    spdlog::info("GPU {}: its MPS control daemon did not run, and is started", look.gpu);
  hooks_.unhealthy(look.gpu, look.lost                  ? "device lost: the driver cannot reach it"
                             : look.mps_trouble.empty() ? ""
                                                        : "MPS: " + look.mps_trouble);
  if (look.lost) device_failed(look.gpu, "device lost");
  see_fault(look);
  const auto use = use_of(look);
  for (const auto& [attempt, used_ns] : use) {
    auto& running = running_.at(attempt);
    see_memory(running, look);
    see_use(running, look, used_ns);
  }
  see_turns(look, use);
  take_turns();
  settle_those(
      [&](const Waiting& one) { return one.gpu == look.gpu && one.answer <= look.answers; });
}

void GpuShares::see_use(Running& running, const GpuLook& look, int64_t used_ns) {
  if (running.processes.supervisor() == 0) return;
  running.used_ns += static_cast<uint64_t>(used_ns);
  if (!running.on_gpu) {
    const auto& processes = running.processes.list(executor_);
    running.on_gpu = !look.unmeasured.empty() || used_ns > 0 ||
                     std::any_of(processes.begin(), processes.end(), [&](pid_t process) {
                       return look.memory_bytes.contains(process);
                     });
  }
  join_turns(running);
}

void GpuShares::see_turns(const GpuLook& look, const std::map<AttemptId, int64_t>& use) {
  const auto turns = turns_.find(look.gpu);
  if (turns == turns_.end()) return;
  advance(turns->second);
  if (look.unmeasured.empty())
    turns->second.used(use);
  else
    turns->second.unmeasured();
}

// On a busy machine signals come late, and not to what was forked meanwhile.
bool GpuShares::runs_on(Running& running) {
  bool runs = false;
  running.standing_pace.look([&] {
    const auto& processes = running.processes.list(executor_);
    runs = !std::all_of(processes.begin(), processes.end(), stands_still);
  });
  if (!runs) return false;
  executor_.stand_still(running.attempt.task, running.attempt.attempt, true);
  return true;
}

void GpuShares::advance(GpuSchedule& turns) {
  const int64_t now_ns = clock_.boot_ns();
  if (const auto last = turns.leaves(now_ns))
    if (const auto found = running_.find(*last); found != running_.end() && found->second.stands)
      if (runs_on(found->second)) turns.runs_on(now_ns);
  turns.advance(now_ns);
}

// With MPS use is an estimate, and what its kernels do in others' turns hurts nobody.
void GpuShares::join_turns(Running& running) {
  if (running.ending || !running.on_gpu) return;
  auto& turns = turns_[running.gpu];
  advance(turns);
  const uint32_t milli = running.part.milli;
  if (!mps_unit(running.gpu)) return turns.set(running.attempt, milli);
  const bool as_it_began = milli >= running.began_milli;
  turns.set_beside(running.attempt,
                   as_it_began ? kWholeShare : milli * kWholeShare / running.clients_milli);
}

void GpuShares::leave_turns(Running& running) {
  const auto turns = turns_.find(running.gpu);
  if (turns == turns_.end()) return;
  advance(turns->second);
  turns->second.remove(running.attempt);
  if (turns->second.empty()) turns_.erase(turns);
}

void GpuShares::take_turns() {
  int64_t due_ns = GpuTurns::kNever_ns;
  for (auto& [gpu, turns] : turns_) {
    advance(turns);
    due_ns = std::min(due_ns, turns.next_ns());
  }
  // Who stops does so before another one goes on; in a call of the driver it does when that
  // returns, and what it holds there is of its own context.
  for (const bool still : {true, false})
    for (auto& [attempt, running] : running_) {
      const auto turns = turns_.find(running.gpu);
      if (turns == turns_.end() || !turns->second.has(attempt)) continue;
      const bool may_run = turns->second.runs(attempt);
      if (may_run != still && running.stands != still) stand(running, still);
    }
  wake_at(due_ns);
}

void GpuShares::wake_at(int64_t due_ns) {
  if (due_ns == due_ns_) return;
  due_ns_ = due_ns;
  if (due_ns == GpuTurns::kNever_ns) return;
  constexpr int64_t kMs = 1'000'000;
  const int64_t delay_ms = (std::max<int64_t>(0, due_ns - clock_.boot_ns()) + kMs - 1) / kMs;
  loop_.detach(loop_.after_ms(delay_ms).then([weak = std::weak_ptr(self_), due_ns] {
    const auto self = weak.lock();
    if (!self || (*self)->due_ns_ != due_ns) return;
    (*self)->due_ns_ = GpuTurns::kNever_ns;
    (*self)->take_turns();
  }),
               "turns on GPUs");
}

uint64_t GpuShares::peak_bytes(AttemptId attempt) const {
  const auto found = running_.find(attempt);
  return found == running_.end() ? 0 : found->second.peak_bytes;
}

void GpuShares::see_memory(Running& running, const GpuLook& look) {
  uint64_t bytes = 0;
  for (const pid_t process : running.processes.list(executor_))
    if (const auto has = look.memory_bytes.find(process); has != look.memory_bytes.end())
      bytes += has->second;
  running.peak_bytes = std::max(running.peak_bytes, bytes);
  // MPS refuses what is beyond the share by itself.
  if (!mps_unit(look.gpu)) check_memory(running, running.attempt, bytes);
}

void GpuShares::check_memory(Running& running, AttemptId attempt, uint64_t bytes) {
  if (running.part.memory_bytes == 0 || running.ending) return;
  if (bytes <= running.part.memory_bytes) return;
  end(attempt, running,
      {TaskEnd::kMemoryLimit,
       fmt::format("it has {} bytes of the GPU's memory, its share are {}", bytes,
                   running.part.memory_bytes),
       false});
}

void GpuShares::end(AttemptId attempt, Running& running, GpuEnd end) {
  if (running.end) return;
  running.end = std::move(end);
  // What it calls may come back here and change the map.
  hooks_.end(attempt, std::string(running.end->reason));
}

void GpuShares::end_all(const std::string& gpu, const std::string& why) {
  std::vector<AttemptId> on_it;
  for (const auto& [attempt, running] : running_)
    if (running.gpu == gpu) on_it.push_back(attempt);
  for (const auto attempt : on_it)
    if (const auto found = running_.find(attempt); found != running_.end())
      end(attempt, found->second, {TaskEnd::kLost, why, true});
}

void GpuShares::device_failed(const std::string& gpu, const std::string& why) {
  if (unit(gpu)) end_all(gpu, fmt::format("GPU {}: {}", gpu, why));
}

std::vector<MetricValue> GpuShares::metrics() const {
  if (units_.empty()) return {};
  const auto count = [](uint64_t n) { return static_cast<double>(n); };
  return {{"gpu_mps_server_faults", count(server_faults_)},
          {"gpu_mps_control_starts", count(control_starts_)},
          {"gpu_share_stops", count(stops_)}};
}

}  // namespace tierpilot::agent
