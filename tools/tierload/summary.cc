#include "tools/tierload/summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tierpilot::tierload {
namespace {

using nlohmann::ordered_json;

void put_spread(ordered_json& object, const std::string& key, const std::optional<Spread>& spread) {
  if (spread)
    object[key] = {{"mean", spread->mean}, {"p99", spread->p99}};
  else
    object[key] = {{"mean", nullptr},
                   {"mean_unavailable", "no task succeeded"},
                   {"p99", nullptr},
                   {"p99_unavailable", "no task succeeded"}};
}

}  // namespace

double percentile(std::vector<double> values, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::optional<Spread> spread_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return Spread{sum / static_cast<double>(values.size()), percentile(values, 0.99)};
}

Summary summarize(const std::vector<TaskFacts>& tasks) {
  Summary summary{.tasks = tasks.size()};
  std::vector<double> waits, responses, data, runs, cpu;
  uint64_t local = 0, all = 0;
  for (const auto& task : tasks) {
    local += task.local_bytes;
    all += task.local_bytes + task.promoted_bytes + task.fetched_bytes;
    summary.evicted_bytes += task.evicted_bytes;
    if (!task.succeeded) {
      ++summary.failed;
      continue;
    }
    waits.push_back(static_cast<double>(task.started_ms - task.submitted_ms));
    data.push_back(task.data_ms);
    runs.push_back(task.run_ms);
    cpu.push_back(task.cpu_ms);
    responses.push_back(static_cast<double>(task.finished_ms - task.submitted_ms));
  }
  summary.wait_ms = spread_of(waits);
  summary.data_ms = spread_of(data);
  summary.run_ms = spread_of(runs);
  summary.cpu_ms = spread_of(cpu);
  summary.response_ms = spread_of(responses);
  if (all > 0) summary.local_byte_share = static_cast<double>(local) / static_cast<double>(all);
  return summary;
}

ordered_json summary_json(const Summary& summary) {
  ordered_json json{{"tasks", summary.tasks}, {"failed", summary.failed}};
  put_spread(json, "wait_ms", summary.wait_ms);
  put_spread(json, "data_ms", summary.data_ms);
  put_spread(json, "run_ms", summary.run_ms);
  put_spread(json, "cpu_ms", summary.cpu_ms);
  put_spread(json, "response_ms", summary.response_ms);
  json["local_byte_share"] =
      summary.local_byte_share ? ordered_json(*summary.local_byte_share) : ordered_json(nullptr);
  if (!summary.local_byte_share)
    json["local_byte_share_unavailable"] = "no task was served any data";
  json["evicted_bytes"] = summary.evicted_bytes;
  return json;
}

}  // namespace tierpilot::tierload
