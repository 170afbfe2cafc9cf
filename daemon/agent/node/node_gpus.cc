// The node's GPUs: which of them tasks share, and who watches them.
#include <algorithm>
#include <future>

#include "base/log.h"
#include "daemon/agent/gpus/mps_control.h"
#include "daemon/agent/gpus/mps_processes.h"
#include "daemon/agent/node/node_parts.h"
#include "daemon/exec/helper_program.h"

namespace tierpilot::agent {
namespace {

// Empty: without MPS, which serves programs of one user at a time.
Result<std::string> mps_program(const NodeConfig::SharedGpus& config, bool other_users) {
  if (config.mps == "never" || other_users) return std::string();
  auto program = find_program(config.mps_control);
  if (program.empty() && config.mps == "always")
    return fail(ErrorCode::kUnavailable, "sharing.mps is \"always\" and '" + config.mps_control +
                                             "' is not installed: install it, or say \"auto\"");
  return program;
}

MpsOptions mps_options(const NodeConfig& config, const std::string& gpu) {
  return {.program = find_program(config.shared_gpus.mps_control),
          .gpu = gpu,
          .folder = config.work_dir / "mps" / gpu};
}

// Tried once: with "auto", one that does not come up is as good as none. Of an earlier daemon's one
// tasks may be clients still, which keeps a new one from coming up.
bool has_mps(const NodeConfig& config, const std::string& program, const std::string& gpu) {
  if (program.empty() || config.shared_gpus.mps == "always") return !program.empty();
  MpsControl control(mps_options(config, gpu));
  if (control.is_there()) return true;
  const auto up = control.keep_running();
  if (!up)
    spdlog::warn("GPU {} is shared in turns, as sharing.mps is \"auto\" and {}", gpu,
                 up.error().message);
  return up.has_value();
}

// By GPU; each may take its time to answer.
std::map<std::string, bool> by_mps(const NodeConfig& config, const std::string& program,
                                   const std::vector<std::string>& gpus) {
  std::map<std::string, std::future<bool>> asked;
  for (const auto& gpu : gpus)
    asked[gpu] = std::async(std::launch::async, [&] { return has_mps(config, program, gpu); });
  std::map<std::string, bool> answers;
  for (auto& [gpu, answer] : asked) answers[gpu] = answer.get();
  return answers;
}

// Of GPUs that were shared by it when an earlier daemon was killed, and are not now.
void end_mps_of_others(const NodeConfig& config, const std::vector<GpuShares::Unit>& units) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(config.work_dir / "mps", error)) {
    const bool is_kept = std::any_of(units.begin(), units.end(), [&](const auto& unit) {
      return unit.mps_folder == entry.path();
    });
    if (!is_kept && end_mps_processes(MpsControl::pipes(entry.path())))
      spdlog::info("GPU {}: MPS, which an earlier daemon left, is ended",
                   entry.path().filename().native());
  }
}

}  // namespace

Status Node::Parts::share_gpus() {
  for (const auto& cpus : config.shared_units) shared_units.push_back({cpus});
  const auto& wanted = config.shared_gpus;
  const auto program = mps_program(wanted, config.task_users.others());
  if (!wanted.uuids.empty() && !program) return tl::unexpected(program.error());
  std::vector<GpuShares::Unit> units;
  std::vector<std::string> shared;
  for (const auto& gpu : topology.gpus)
    if (!gpu.uuid.empty() && wanted.shares(gpu.uuid)) shared.push_back(gpu.uuid);
  const auto answers = by_mps(config, *program, shared);
  for (const auto& gpu : topology.gpus) {
    if (!answers.contains(gpu.uuid)) continue;
    const bool mps = answers.at(gpu.uuid);
    const auto folder = mps ? mps_options(config, gpu.uuid).folder : std::filesystem::path();
    shared_units.push_back({wanted.cpus, gpu.uuid});
    units.push_back({gpu.uuid, folder, multiprocessors_of(gpu)});
    spdlog::info(
        "GPU {} is shared, {}", gpu.uuid,
        mps ? "by MPS" : "in turns: MPS is off, not to be had, or not for tasks of several users");
  }
  for (const auto& uuid : wanted.uuids)
    if (uuid != "all" && std::none_of(units.begin(), units.end(),
                                      [&](const auto& unit) { return unit.gpu == uuid; }))
      spdlog::warn("sharing.gpus: {} is not here{}", uuid,
                   topology.gpus_unavailable.empty() ? "" : ": " + topology.gpus_unavailable);
  end_mps_of_others(config, units);
  gpu_shares = std::make_unique<GpuShares>(
      std::move(units), loop, *executor, system_clock(),
      GpuShares::Hooks{
          .end = [this](AttemptId attempt, const std::string& why) { tasks->cancel(attempt, why); },
          .unhealthy = [this](const std::string& gpu,
                              const std::string& why) { health.say("gpu/" + gpu, "look", why); },
          .ask =
              [this](const std::string& gpu) {
                const auto poll = gpu_polls.find(gpu);
                return poll == gpu_polls.end() ? 0 : poll->second->ask();
              },
          .idle =
              [this](const std::string& gpu, bool idle) {
                if (const auto poll = gpu_polls.find(gpu); poll != gpu_polls.end())
                  poll->second->set_idle(idle);
              }});
  return {};
}

void Node::Parts::poll_gpus() {
  for (const auto& unit : gpu_shares->units()) {
    GpuPoll::Options options{.gpu = unit.gpu, .mps = {}};
    if (!unit.mps_folder.empty()) options.mps = mps_options(config, unit.gpu);
    gpu_polls[unit.gpu] =
        std::make_unique<GpuPoll>(std::move(options), system_clock(), [this](GpuLook look) {
          loop.post([this, look = std::move(look)] { gpu_shares->looked(look); });
        });
  }
}

// Each may take its time, and is waited for at the same time.
void Node::Parts::end_gpu_polls() {
  std::vector<std::future<void>> ends;
  for (auto& [uuid, poll] : gpu_polls)
    ends.push_back(std::async(std::launch::async, [&poll] { poll.reset(); }));
  ends.clear();
  gpu_polls.clear();
}

void Node::Parts::watch_gpus() {
  if (topology.gpus.empty()) return;
  std::vector<std::string> warnings;
  auto opened = NvmlEvents::open(GpuWatch::Options{}.library, warnings);
  for (const auto& warning : warnings) spdlog::warn("{}", warning);
  if (!opened) return spdlog::warn("failing GPUs are not noticed: {}", opened.error().message);
  gpu_watch = std::make_unique<GpuWatch>(
      std::move(*opened), GpuWatch::Options{}, system_clock(),
      GpuWatch::Hooks{
          .post = [this](std::function<void()> work) { loop.post(std::move(work)); },
          .failed =
              [this](const GpuFault& fault) {
                spdlog::warn("GPU {}: {}: {}", fault.gpu, fault.kind, fault.detail);
                events.add(UnitFaultEvent{"gpu/" + fault.gpu, fault.kind, fault.detail});
                gpu_shares->device_failed(fault.gpu, fault.kind + ": " + fault.detail);
              },
          .changed =
              [this](const std::string& gpu, bool lost) {
                if (lost) gpu_shares->device_failed(gpu, "device lost");
                health.say("gpu/" + gpu, "device",
                           lost ? "device lost: the driver cannot reach it" : "");
              }});
}

void Node::Parts::read_gpus() {
  if (topology.gpus.empty()) return;
  gpu_reader = std::make_unique<GpuReader>(
      GpuReader::Options{}, [this](Result<std::vector<GpuReading>> readings) {
        if (!readings) spdlog::debug("GPUs: {}", readings.error().message);
        loop.post([this, told = readings.value_or(std::vector<GpuReading>{})]() mutable {
          status->set_gpus(std::move(told));
        });
      });
}

}  // namespace tierpilot::agent
