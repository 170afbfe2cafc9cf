#include "policies/sim/gang/gang_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/table/line_reader.h"
#include "base/text/json_member.h"
#include "base/text/json_text.h"
#include "policies/sim/gang/estimated_failures.h"

namespace tierpilot::gang {
namespace {

using nlohmann::json;

constexpr double kHourMs = 3600e3;
constexpr double kMostUnits = 1e6;
constexpr double kMinWorkH = 0.1, kMaxWorkH = 72;

double number(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

// Nothing: it is no gang that came to its end.
std::optional<Job> job_of(const json& line) {
  const auto gang = line.find("gang");
  if (gang == line.end() || !gang->is_object()) return {};
  const double units = number(*gang, "ranks") * number(*gang, "units_per_rank");
  const double began_ms = number(line, "started_ms");
  const double ended_ms = number(line, "finished_ms");
  if (!(units >= 1 && units <= kMostUnits) || !(began_ms > 0 && ended_ms > began_ms)) return {};
  return Job{.arrival_h = number(line, "submitted_ms") / kHourMs,
             .units = static_cast<uint32_t>(units),
             .work_h = std::clamp((ended_ms - began_ms) / kHourMs, kMinWorkH, kMaxWorkH)};
}

// As many as a cell has, with replacement, in the order of their draw.
std::vector<Job> drawn_again(const std::vector<Job>& jobs, size_t count, uint64_t seed) {
  SeededRandom random(derived_seed(seed, "gang history jobs"));
  std::vector<Job> drawn;
  for (size_t i = 0; i < count; ++i) {
    drawn.push_back(jobs[random.below(jobs.size())]);
    drawn.back().arrival_h = random.unit();
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const Job& a, const Job& b) { return a.arrival_h < b.arrival_h; });
  return drawn;
}

void set_failures(const GangHistory& history, uint64_t seed, GangScene& scene) {
  auto& failures = scene.failures;
  failures.past = history.failures;
  failures.past_times_h.clear();
  failures.past_h = history.hours;
  if (history.failures.size() != scene.units) {
    SeededRandom random(derived_seed(seed, "gang history nodes"));
    const size_t nodes = history.failures.size() / history.units_per_node;
    failures.past.clear();
    while (failures.past.size() < scene.units) {
      const auto from = history.failures.begin() +
                        static_cast<ptrdiff_t>(random.below(nodes) * history.units_per_node);
      failures.past.insert(failures.past.end(), from, from + history.units_per_node);
    }
    failures.past.resize(scene.units);
  }
  failures = estimated_failures(scene, TrueRates::kDrawn, seed);
}

}  // namespace

Result<std::vector<Job>> read_gang_jobs(const std::filesystem::path& file) {
  auto lines = LineReader::open(file, "history");
  if (!lines) return tl::unexpected(lines.error());
  std::vector<Job> jobs;
  for (bool is_header = true;; is_header = false) {
    const auto line = lines->next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) break;
    const json value = parse_json_or_discard<json>(**line);
    if (is_header && (!value.is_object() || !member_is(value, "schema", "tierpilot-history")))
      return fail(
          ErrorCode::kInvalid,
          fmt::format("{}: this is no history: tierctl history export writes one", lines->place()));
    if (value.is_object())
      if (auto job = job_of(value)) jobs.push_back(*job);
  }
  if (jobs.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("history '{}' has no gang that came to its end: there is nothing to "
                            "learn from; export a longer time",
                            file.string()));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_h < b.arrival_h; });
  return jobs;
}

GangScene history_scene(const GangHistory& history, GangSuite suite, GangCell cell, uint64_t seed) {
  suite.trace = drawn_again(history.jobs, 60 + cell.units / 2, seed);
  cell.from_trace = true;
  if (!history.failures.empty()) cell.units_per_node = history.units_per_node;
  auto scene = scene_of(suite, cell, seed);
  if (!history.failures.empty()) set_failures(history, seed, scene);
  return scene;
}

}  // namespace tierpilot::gang
