#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "daemon/topology/discover.h"
#include "daemon/topology/nvml.h"

namespace tierpilot {
namespace {

struct Answer {
  std::vector<std::string> warnings;
  Result<std::vector<Gpu>> gpus;
};

Answer ask(const std::string& library) {
  std::vector<std::string> warnings;
  auto gpus = Nvml::open(library).and_then([&](const Nvml& nvml) { return nvml.gpus(warnings); });
  return {std::move(warnings), std::move(gpus)};
}

// What one thread asks for and another one waits for, not for ever.
struct Question {
  std::promise<Answer> told;
  std::atomic<bool> over = false;  // told, or given up: whichever came first
};

// A thread that the driver keeps for good is left behind.
Answer ask(const std::string& library, std::chrono::milliseconds patience,
           const std::function<void()>& gpus_came_late) {
  auto question = std::make_shared<Question>();
  auto answer = question->told.get_future();
  try {
    std::thread([question, library, gpus_came_late] {
      auto told = ask(library);
      const bool any = told.gpus && !told.gpus->empty();
      question->told.set_value(std::move(told));
      if (question->over.exchange(true) && any && gpus_came_late) gpus_came_late();
    }).detach();
  } catch (const std::system_error& error) {
    return {{}, fail(ErrorCode::kUnavailable, fmt::format("no thread to ask: {}", error.what()))};
  }
  if (answer.wait_for(patience) == std::future_status::ready || question->over.exchange(true))
    return answer.get();
  auto why = fmt::format("the driver does not answer: {} was asked {} s ago", library,
                         std::chrono::duration<double>(patience).count());
  return {{"GPUs: " + why}, fail(ErrorCode::kUnavailable, std::move(why))};
}

}  // namespace

void discover_gpus(FactReader& facts, const DiscoverOptions& options, Topology& topology) {
  if (options.nvml_library.empty()) {
    topology.gpus_unavailable = "not looked for";
    return;
  }
  auto [warnings, gpus] = ask(options.nvml_library, options.nvml_patience, options.gpus_came_late);
  for (auto& warning : warnings) topology.warnings.push_back(std::move(warning));
  if (!gpus) {
    topology.gpus_unavailable = gpus.error().message;
    return;
  }
  for (auto& gpu : *gpus)
    if (!gpu.pci_address.empty())
      gpu.numa_node =
          facts.node_id(fmt::format("/sys/bus/pci/devices/{}/numa_node", gpu.pci_address));
  topology.gpus = std::move(*gpus);
}

}  // namespace tierpilot
