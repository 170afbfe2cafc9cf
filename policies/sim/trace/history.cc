#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/table/cell.h"
#include "base/table/line_reader.h"
#include "base/text/json_text.h"
#include "policies/sim/trace/readers.h"
#include "policies/sim/trace/trace_builder.h"

namespace tierpilot::sim {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr double kMaxBytes = 1e18;
constexpr double kMaxMs = 9e12;
constexpr double kMostRanks = 4096;
constexpr double kMostGpus = 64;  // of a rank

// nlohmann's dump recurses: a deep value would be the end of the stack.
std::string written(const json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return shown(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

// A member as a number within [0, max]; null and absent are 0.
double number(const json& object, const char* key, double max, std::optional<Fault>& fault) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return 0;
  const double value = at->is_number() ? at->get<double>() : NAN;
  if (value >= 0 && value <= max) return value;
  if (!fault)
    fault = Fault{fmt::format("{} is out of range", key),
                  fmt::format("{}: {} is not a number within 0 and {}", key, written(*at), max)};
  return 0;
}

std::string text(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

bool names_a_dataset(const json& use) {
  return use.is_object() && !text(use, "dataset").empty();
}

class HistoryReader {
 public:
  explicit HistoryReader(TraceBuilder& builder) : builder_(builder) {}

  void add_dataset(const json& line, const std::string& place) {
    const auto bytes = line.find("bytes");
    if (bytes == line.end() || bytes->is_null()) return;  // its tasks tell, if anything does
    std::optional<Fault> fault;
    const auto size = static_cast<uint64_t>(number(line, "bytes", kMaxBytes, fault));
    if (fault) return builder_.skip(fault->reason, place, fault->detail);
    learn(text(line, "dataset"), size);
  }

  void add_task(const json& line, const std::string& place) {
    std::optional<Fault> fault;
    Task task;
    task.arrival_ns = std::llround(number(line, "submitted_ms", kMaxMs, fault) * 1e6);
    task.units = static_cast<uint32_t>(std::max(number(line, "units", kMaxWidth, fault), 1.0));
    task.memory_bytes = static_cast<uint64_t>(number(line, "memory_bytes", kMaxBytes, fault));
    task.operations = run_time_s(line, fault) * kReferenceOperationsPerSecond;
    const auto uses = uses_of(line, fault);
    if (!fault && task.operations == 0)
      fault = Fault{"it did not run to an end",
                    fmt::format("the task is {} and has no run time", shown(text(line, "state")))};
    if (const auto of = line.find("rank_of"); of != line.end() && !of->is_null())
      return builder_.skip("it is a rank of a gang, which counts as a whole", place,
                           "a rank, whose gang is another line");
    const uint32_t ranks = read_gang(line, task, fault);
    if (fault) return builder_.skip(fault->reason, place, fault->detail);
    task.user = builder_.user(text(line, "user"));
    ranks > 1 ? builder_.add_gang(task, ranks, uses) : builder_.add(task, uses);
  }

  void tell() {
    builder_.derived("operations: from each task's run time");
    if (from_served_)
      builder_.derived(
          fmt::format("size of {} datasets: the rest of what the task that used them was served",
                      from_served_));
    if (left_out_)
      builder_.derived(fmt::format("{} uses of datasets of unknown size are left out", left_out_));
  }

 private:
  struct Known {
    uint32_t index = 0;
    uint64_t bytes = 0;
  };

  void learn(const std::string& name, uint64_t bytes) {
    if (!datasets_.contains(name)) datasets_[name] = {builder_.add_dataset(bytes), bytes};
  }

  // As the node measured it; else from the times in the store, which are the coordinator's.
  static double run_time_s(const json& line, std::optional<Fault>& fault) {
    const double wall_ns = number(line, "wall_ns", kMaxDurationSeconds * 1e9, fault);
    if (wall_ns > 0) return wall_ns / 1e9;
    const double start_ms = number(line, "started_ms", kMaxMs, fault);
    const double end_ms = number(line, "finished_ms", kMaxMs, fault);
    return start_ms > 0 && end_ms > start_ms ? (end_ms - start_ms) / 1e3 : 0;
  }

  // How many ranks it has; 1: it is no gang. Each needs what the line says.
  static uint32_t read_gang(const json& line, Task& task, std::optional<Fault>& fault) {
    const auto gang = line.find("gang");
    if (gang == line.end() || gang->is_null()) return 1;
    if (!gang->is_object()) {
      if (!fault) fault = Fault{"gang is no object", "gang: " + written(*gang)};
      return 1;
    }
    if (text(*gang, "engine") == "gpu")
      task.gpu_milli =
          1000 * static_cast<uint32_t>(number(*gang, "units_per_rank", kMostGpus, fault));
    return static_cast<uint32_t>(std::max(number(*gang, "ranks", kMostRanks, fault), 1.0));
  }

  std::vector<DatasetUse> uses_of(const json& line, std::optional<Fault>& fault) {
    const auto list = line.find("uses");
    if (list == line.end() || list->is_null()) return {};
    if (!list->is_array() || !std::all_of(list->begin(), list->end(), names_a_dataset)) {
      if (!fault)
        fault = Fault{"uses are no list of datasets",
                      fmt::format("uses: {} does not name datasets", written(*list))};
      return {};
    }
    learn_from_served(line, *list, fault);
    std::vector<DatasetUse> uses;
    for (const auto& use : *list) {
      const auto known = datasets_.find(text(use, "dataset"));
      if (known == datasets_.end()) {
        ++left_out_;
        continue;
      }
      const auto write = use.find("write");
      const bool writes = write != use.end() && write->is_boolean() && write->get<bool>();
      uses.push_back({known->second.index, writes});
    }
    return uses;
  }

  // A removed dataset has no size any more, but the task that used it was served its bytes.
  void learn_from_served(const json& line, const json& uses, std::optional<Fault>& fault) {
    std::string unknown;
    double rest = number(line, "served_bytes", kMaxBytes, fault);
    for (const auto& use : uses) {
      const auto name = text(use, "dataset");
      const auto known = datasets_.find(name);
      if (known != datasets_.end()) {
        rest -= static_cast<double>(known->second.bytes);
        continue;
      }
      if (!unknown.empty()) return;
      unknown = name;
    }
    if (unknown.empty() || rest < 1) return;
    learn(unknown, static_cast<uint64_t>(rest));
    ++from_served_;
  }

  TraceBuilder& builder_;
  std::unordered_map<std::string, Known> datasets_;
  uint64_t from_served_ = 0, left_out_ = 0;
};

Status check_header(const json& header, const std::string& place) {
  if (!header.is_object() || text(header, "schema") != "tierpilot-history")
    return fail(
        ErrorCode::kInvalid,
        fmt::format("trace {}: this is no history: tierctl history export writes one", place));
  const auto version = header.find("version");
  if (version != header.end() && version->is_number() && version->get<double>() == kVersion)
    return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("trace {}: the history is of another version; this one reads version {}",
                          place, kVersion));
}

}  // namespace

Result<Trace> read_history(const std::filesystem::path& path, const TraceOptions& options) {
  auto lines = LineReader::open(path, "trace");
  if (!lines) return tl::unexpected(lines.error());
  TraceOptions own = options;
  own.datasets.reset();  // a history tells which data its tasks used, also that they used none
  TraceBuilder builder("history", path, own);
  HistoryReader reader(builder);
  for (bool header = true;;) {
    const auto line = lines->next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) break;
    if ((*line)->find_first_not_of(" \t") == std::string_view::npos) continue;
    const json value = parse_json_or_discard<json>(**line);
    if (header) {
      if (auto good = check_header(value, lines->place()); !good)
        return tl::unexpected(good.error());
      header = false;
    } else if (!value.is_object()) {
      builder.skip("not JSON", lines->place(), shown(**line) + " is not a JSON object");
    } else if (value.contains("task")) {
      reader.add_task(value, lines->place());
    } else if (value.contains("dataset")) {
      reader.add_dataset(value, lines->place());
    } else {
      builder.skip("neither task nor dataset", lines->place(), "it is neither task nor dataset");
    }
  }
  reader.tell();
  return std::move(builder).finish();
}

}  // namespace tierpilot::sim
