#include "daemon/agent/job_channel/job_message.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"

namespace tierpilot::agent {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kMaxNameBytes = 64;

struct Wrong {
  std::string why;
};

uint64_t count(const json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end()) return 0;
  if (!found->is_number_unsigned())
    throw Wrong{fmt::format("'{}' must be a whole number, 0 or more", key)};
  return found->get<uint64_t>();
}

// A loss may have become infinite or none: JSON has no word for that, so that it is left out.
std::optional<double> number(const json& value, const std::string& key) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_number()) throw Wrong{fmt::format("'{}' must be a number", key)};
  const double figure = value.get<double>();
  return std::isfinite(figure) ? std::optional(figure) : std::nullopt;
}

JobProgress progress_of(const json& message) {
  if (!message.contains("iteration")) throw Wrong{"progress needs its 'iteration'"};
  JobProgress progress{.iteration = count(message, "iteration"),
                       .iterations = count(message, "iterations"),
                       .samples = count(message, "samples"),
                       .loss = {},
                       .measures = {}};
  if (const auto loss = message.find("loss"); loss != message.end())
    progress.loss = number(*loss, "loss");
  const auto measures = message.find("measures");
  if (measures == message.end()) return progress;
  if (!measures->is_object() || measures->size() > kMaxJobMeasures)
    throw Wrong{fmt::format("'measures' must be an object of at most {} numbers", kMaxJobMeasures)};
  for (const auto& [name, value] : measures->items()) {
    if (name.empty() || name.size() > kMaxNameBytes)
      throw Wrong{fmt::format("a measure's name has 1 to {} bytes", kMaxNameBytes)};
    if (const auto figure = number(value, name)) progress.measures.emplace_back(name, *figure);
  }
  return progress;
}

JobCheckpoint checkpoint_of(const json& message) {
  const auto path = message.find("path");
  if (path == message.end() || !path->is_string()) throw Wrong{"'path' must be a text"};
  if (!message.contains("iteration")) throw Wrong{"a checkpoint needs its 'iteration'"};
  return {path->get<std::string>(), count(message, "iteration"), count(message, "saving_ms")};
}

JobMessage message_of(const json& message) {
  if (!message.is_object()) throw Wrong{"a message is a JSON object"};
  if (count(message, "v") != kVersion)
    throw Wrong{fmt::format("'v' must be {}, the version of the format", kVersion)};
  const std::string type = message.value("type", "");
  if (type == "progress") return progress_of(message);
  if (type == "checkpoint") return checkpoint_of(message);
  if (type == "takes_checkpoints") return JobTakesCheckpoints{};
  throw Wrong{"'type' must be \"progress\", \"checkpoint\" or \"takes_checkpoints\""};
}

}  // namespace

Result<JobMessage> parse_job_line(std::string_view line) {
  try {
    return message_of(parse_json<json>(line));
  } catch (const Wrong& wrong) {
    return fail(ErrorCode::kInvalid, wrong.why);
  } catch (const json::exception& error) {
    return fail(ErrorCode::kInvalid, fmt::format("no JSON: {}", error.what()));
  }
}

static std::string line_of(const json& message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

std::string job_cores_line(double cores) {
  return line_of({{"v", kVersion}, {"type", "cores"}, {"cores", cores}});
}

std::string job_share_line(uint32_t milli) {
  return line_of({{"v", kVersion}, {"type", "share"}, {"milli", milli}});
}

std::string job_stop_line(const std::string& reason) {
  return line_of({{"v", kVersion}, {"type", "stop"}, {"reason", reason}});
}

std::string job_error_line(const std::string& what) {
  return line_of({{"v", kVersion}, {"type", "error"}, {"what", what}});
}

std::string job_checkpoint_saved_line(uint64_t iteration, uint64_t bytes, uint64_t ms) {
  return line_of({{"v", kVersion},
                  {"type", "checkpoint_saved"},
                  {"iteration", iteration},
                  {"bytes", bytes},
                  {"ms", ms}});
}

std::string job_checkpoint_failed_line(uint64_t iteration, const std::string& what) {
  return line_of(
      {{"v", kVersion}, {"type", "checkpoint_failed"}, {"iteration", iteration}, {"what", what}});
}

std::string job_checkpoint_now_line(const std::string& reason) {
  return line_of({{"v", kVersion}, {"type", "checkpoint_now"}, {"reason", reason}});
}

std::string job_checkpoint_every_line(double interval_s, double cost_s, double failures_per_h) {
  return line_of({{"v", kVersion},
                  {"type", "checkpoint_every"},
                  {"seconds", interval_s},
                  {"cost_s", cost_s},
                  {"failures_per_h", failures_per_h}});
}

std::string job_checkpoint_safe_line(uint64_t iteration, uint32_t copies) {
  return line_of(
      {{"v", kVersion}, {"type", "checkpoint_safe"}, {"iteration", iteration}, {"copies", copies}});
}

}  // namespace tierpilot::agent
