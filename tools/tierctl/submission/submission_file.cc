#include "tools/tierctl/submission/submission_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/files/open_to_read.h"
#include "base/memory_wish.h"
#include "tools/cluster/duration.h"
#include "tools/tierctl/json_fields.h"
#include "tools/tierctl/submission/elastic_words.h"
#include "tools/tierctl/submission/range.h"
#include "tools/tierctl/submission/share_words.h"

namespace tierpilot::tierctl {
namespace {

constexpr size_t kMaxFileBytes = 16 << 20;
constexpr uint32_t kMaxUnits = 65'536;
constexpr int kMostPriority = 1000;

double operations(const ordered_json& value, const std::string& place) {
  if (!value.is_number() || value.get<double>() < 0 || !std::isfinite(value.get<double>()))
    throw Wrong{place, "must be a number, 0 or more"};
  return value.get<double>();
}

DatasetUse dataset_of(const ordered_json& value, const std::string& place) {
  Fields fields(value, place);
  DatasetUse dataset;
  fields.with("name", [&](const auto& v, const auto& at) { dataset.dataset = text(v, at); });
  fields.with("mode", [&](const auto& v, const auto& at) {
    const std::string mode = text(v, at);
    if (mode != "read" && mode != "write") throw Wrong{at, "must be \"read\" or \"write\""};
    dataset.write = mode == "write";
  });
  fields.finish();
  if (dataset.dataset.empty()) throw Wrong{place, "needs a \"name\""};
  return dataset;
}

std::vector<std::pair<std::string, std::string>> env_of(const ordered_json& value,
                                                        const std::string& place) {
  if (!value.is_object()) throw Wrong{place, "must be an object of strings"};
  std::vector<std::pair<std::string, std::string>> env;
  for (const auto& [name, entry] : value.items()) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
      throw Wrong{place, fmt::format("'{}' cannot be the name of a variable", name)};
    env.emplace_back(name, text(entry, place + "." + name));
  }
  return env;
}

uint32_t whole_number(const ordered_json& value, const std::string& place, uint32_t least,
                      uint32_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most)
    throw Wrong{place, fmt::format("must be a whole number from {} to {}", least, most)};
  return value.get<uint32_t>();
}

GangWords read_gang(Fields& fields, GangSpec& gang) {
  GangWords words;
  gang.max_restarts = kUsualRestarts;
  fields.with("ranks", [&](const auto& v, const auto& at) {
    gang.ranks = whole_number(v, at, 1, kMostRanks);
  });
  fields.with("max_ranks", [&](const auto& v, const auto& at) {
    gang.max_ranks = whole_number(v, at, 1, kMostRanks);
  });
  fields.with("engine", [&](const auto& v, const auto& at) { words.engine = text(v, at); });
  fields.with("units_per_rank", [&](const auto& v, const auto& at) {
    words.units_per_rank = whole_number(v, at, 1, kMaxUnits);
  });
  fields.with("ranks_per_node",
              [&](const auto& v, const auto& at) { words.ranks_per_node = text(v, at); });
  fields.with("max_restarts", [&](const auto& v, const auto& at) {
    gang.max_restarts = whole_number(v, at, 0, 1'000'000);
    words.says_restarts = true;
  });
  const auto duration = [&](const char* key, int64_t& ms) {
    fields.with(key, [&](const auto& v, const auto& at) {
      ms = quantity(v, at, "seconds or a duration as in \"30s\"", parse_duration_ms);
    });
  };
  duration("estimate", gang.estimate_ms);
  duration("start_within", gang.start_within_ms);
  return words;
}

// A model card is the path of its file or the card itself.
ShareWords read_share(Fields& fields) {
  ShareWords words;
  fields.with("share", [&](const auto& v, const auto& at) {
    words.share = v.is_number_unsigned() ? v.dump() : text(v, at);
    if (auto fault = share_fault(words.share); !fault.empty()) throw Wrong{at, fault};
  });
  fields.with("class", [&](const auto& v, const auto& at) {
    words.job_class = text(v, at);
    if (words.job_class != "latency-sensitive" && words.job_class != "best-effort")
      throw Wrong{at, "must be latency-sensitive or best-effort"};
  });
  fields.with("promise", [&](const auto& v, const auto& at) {
    words.promise_ms = quantity(v, at, "seconds or a duration as in \"30s\"", parse_promise_ms);
  });
  fields.with("promise_on_trial", [&](const auto& v, const auto& at) {
    if (!v.is_boolean()) throw Wrong{at, "must be true or false"};
    words.promise_on_trial = v.template get<bool>();
  });
  fields.with("model_card", [&](const auto& v, const auto& at) {
    if (v.is_object())
      words.card = v.dump();
    else if ((words.card_file = text(v, at)).empty())
      throw Wrong{at, "must name a file, or be the card itself"};
  });
  return words;
}

ElasticWords read_elastic(Fields& fields) {
  ElasticWords words;
  fields.with("elastic", [&](const auto& v, const auto& at) { words.range = text(v, at); });
  fields.with("measure", [&](const auto& v, const auto& at) { words.measure = text(v, at); });
  const auto number = [&](const char* key, std::optional<double>& into) {
    fields.with(key, [&](const auto& v, const auto& at) {
      if (!v.is_number()) throw Wrong{at, "must be a number"};
      into = v.template get<double>();
    });
  };
  number("weight", words.weight);
  number("goal", words.goal);
  fields.with("deadline", [&](const auto& v, const auto& at) {
    words.deadline_ms = quantity(v, at, "seconds or a duration as in \"30s\"", parse_duration_ms);
  });
  return words;
}

// What it runs and what it needs for that.
void read_work(Fields& fields, TaskSpec& task) {
  fields.with("name", [&](const auto& v, const auto& at) { task.name = text(v, at); });
  fields.with("command", [&](const auto& v, const auto& at) { task.argv = texts(v, at); });
  fields.with("datasets", [&](const auto& v, const auto& at) {
    each(v, at, [&](const auto& item, const auto& where) {
      task.datasets.push_back(dataset_of(item, where));
    });
  });
  fields.with("units", [&](const auto& v, const auto& at) {
    if (!v.is_number_unsigned() || v.template get<uint64_t>() < 1 ||
        v.template get<uint64_t>() > kMaxUnits)
      throw Wrong{at, fmt::format("must be a whole number from 1 to {}", kMaxUnits)};
    task.units = v.template get<uint32_t>();
  });
  fields.with("memory", [&](const auto& v, const auto& at) {
    task.memory_bytes = quantity(v, at, "bytes or a size as in \"1GiB\"", parse_bytes);
  });
  fields.with("swap_room", [&](const auto& v, const auto& at) {
    task.swap_room_bytes = quantity(v, at, "bytes or a size as in \"1GiB\"", parse_bytes);
  });
  fields.with("float_operations",
              [&](const auto& v, const auto& at) { task.float_operations = operations(v, at); });
  fields.with("int_operations",
              [&](const auto& v, const auto& at) { task.int_operations = operations(v, at); });
  fields.with("time_limit", [&](const auto& v, const auto& at) {
    task.time_limit_ms = quantity(v, at, "seconds or a duration as in \"30s\"", parse_duration_ms);
  });
}

// Among what, where and when it runs.
void read_placing(Fields& fields, TaskSpec& task) {
  fields.with("env", [&](const auto& v, const auto& at) { task.env = env_of(v, at); });
  fields.with("after", [&](const auto& v, const auto& at) { task.after = texts(v, at); });
  fields.with("node", [&](const auto& v, const auto& at) { task.node = text(v, at); });
  fields.with("mem_tier", [&](const auto& v, const auto& at) {
    task.memory_tier = text(v, at);
    if (const auto wish = parse_memory_wish(task.memory_tier); !wish)
      throw Wrong{at, wish.error().message};
  });
  fields.with("priority", [&](const auto& v, const auto& at) {
    if (!v.is_number_integer() || std::abs(v.template get<double>()) > kMostPriority)
      throw Wrong{
          at, fmt::format("must be a whole number from {} to {}", -kMostPriority, kMostPriority)};
    task.priority = v.template get<int32_t>();
  });
}

TaskSpec task_of(const ordered_json& value, const std::string& place, size_t index) {
  Fields fields(value, place);
  TaskSpec task;
  task.name = fmt::format("task-{}", index + 1);
  read_work(fields, task);
  read_placing(fields, task);
  const auto gang = read_gang(fields, task.gang);
  const auto share = read_share(fields);
  if (!share.share.empty() && fields.has("units"))
    throw Wrong{place + ".share", "is of one unit: leave out \"units\""};
  const auto elastic = read_elastic(fields);
  if (!elastic.range.empty() && fields.has("units"))
    throw Wrong{place + ".elastic", "says the units: leave out \"units\""};
  fields.finish();
  if (const auto applied = apply(share, task); !applied)
    throw Wrong{place, applied.error().message};
  if (const auto applied = apply(gang, task); !applied) throw Wrong{place, applied.error().message};
  if (const auto applied = apply(elastic, task); !applied)
    throw Wrong{place, applied.error().message};
  if (task.argv.empty()) throw Wrong{place, "needs a \"command\" with at least one word"};
  if (task.argv.front().empty()) throw Wrong{place + ".command[0]", "must not be empty"};
  if (task.name.empty()) throw Wrong{place + ".name", "must not be empty"};
  return task;
}

// What "after" calls by its number keeps that.
void name_by_commands(std::vector<TaskSpec>& tasks, const std::vector<size_t>& unnamed) {
  std::set<std::string> taken;
  for (const auto& task : tasks) {
    taken.insert(task.name);
    taken.insert(task.after.begin(), task.after.end());
  }
  const auto is_called = [&](const std::string& name) {
    return std::any_of(tasks.begin(), tasks.end(), [&](const auto& task) {
      return std::find(task.after.begin(), task.after.end(), name) != task.after.end();
    });
  };
  for (const size_t at : unnamed) {
    auto& task = tasks[at];
    if (!task.is_shared() || is_called(task.name)) continue;
    const auto name = name_by_command(task.argv);
    task.name = name;
    for (size_t count = 2; !taken.insert(task.name).second; ++count)
      task.name = fmt::format("{}-{}", name, count);
  }
}

std::vector<TaskSpec> submission_of(const ordered_json& document) {
  Fields fields(document, "");
  std::vector<TaskSpec> tasks;
  std::vector<size_t> unnamed;
  std::set<std::string> names;
  fields.with("tasks", [&](const auto& value, const auto& place) {
    each(value, place, [&](const auto& item, const auto& at) {
      tasks.push_back(task_of(item, at, tasks.size()));
      if (!item.contains("name")) unnamed.push_back(tasks.size() - 1);
      if (!names.insert(tasks.back().name).second)
        throw Wrong{at + ".name",
                    fmt::format("a task before is called '{}' too", tasks.back().name)};
    });
  });
  fields.finish();
  if (tasks.empty()) throw Wrong{"tasks", "must be a list with at least one task"};
  name_by_commands(tasks, unnamed);
  return tasks;
}

// nlohmann keeps the last of equal keys; here that is a mistake worth showing.
ordered_json parse_without_duplicates(std::string_view json) {
  constexpr int kMostLevels = 100;  // writing a value goes down its levels on the stack
  std::vector<std::set<std::string>> open;
  const auto check = [&](int level, ordered_json::parse_event_t event, ordered_json& value) {
    if (level > kMostLevels)
      throw Wrong{"", fmt::format("values are nested deeper than {} levels", kMostLevels)};
    if (event == ordered_json::parse_event_t::object_start) open.emplace_back();
    if (event == ordered_json::parse_event_t::object_end) open.pop_back();
    if (event == ordered_json::parse_event_t::key &&
        !open.back().insert(value.get<std::string>()).second)
      throw Wrong{"",
                  fmt::format("the key '{}' stands twice in one object", value.get<std::string>())};
    return true;
  };
  return ordered_json::parse(json, check);
}

// `byte` counts from 1, as nlohmann gives it.
std::string line_and_column(std::string_view text, size_t byte) {
  const auto before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  return fmt::format("{}:{}", line, before.size() - (start == before.npos ? 0 : start + 1) + 1);
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
// without what stands before the cause.
std::string cause_of(const nlohmann::json::parse_error& error) {
  std::string cause = error.what();
  if (const size_t at = cause.find(": "); at != cause.npos) cause.erase(0, at + 2);
  return cause;
}

// 0: any.
Result<std::pair<uint32_t, uint32_t>> parse_ranks_per_node(std::string_view text) {
  if (text.empty()) return std::pair(0u, 0u);
  if (const auto range = parse_range(text)) return *range;
  return fail(
      ErrorCode::kInvalid,
      fmt::format("'{}' are no ranks per node: write MIN:MAX, MIN:, :MAX or one number", text));
}

}  // namespace

Status apply(const GangWords& words, TaskSpec& task) {
  const auto wrong = [](std::string why) { return fail(ErrorCode::kInvalid, std::move(why)); };
  const auto engine = parse_engine(words.engine);
  if (!engine) return wrong(fmt::format("'{}' is no engine: cpu or gpu", words.engine));
  if (!task.is_gang() && !words.ranks_per_node.empty())
    return wrong("ranks per node are for a task with ranks");
  if (!task.is_gang() && *engine != Engine::kCpu && !task.is_shared())
    return wrong("an engine is for a task with ranks or with a share");
  if (task.is_shared()) task.share.engine = *engine;
  if (!task.is_gang() && task.gang.max_ranks > 0)
    return wrong("most ranks (max ranks) are for a task with ranks");
  if (!task.is_gang() && words.says_restarts)
    return wrong("most restarts (max restarts) are for a task with ranks");
  if (!task.is_gang() && words.units_per_rank != 1)
    return wrong("units per rank are for a task with ranks");
  if (!task.is_gang() && task.gang.estimate_ms > 0)
    return wrong("an estimate is for a task with ranks or with a share");
  if (!task.is_gang() && task.gang.start_within_ms > 0)
    return wrong("a time to start is for a task with ranks");
  const auto per_node = parse_ranks_per_node(words.ranks_per_node);
  if (!per_node) return tl::unexpected(per_node.error());
  if (!task.is_gang()) return {};
  if (*engine == Engine::kCpu && task.units != 1)
    return wrong("units are for a task without ranks: give units per rank");
  auto& gang = task.gang;
  gang.engine = *engine;
  (*engine == Engine::kGpu ? gang.gpus_per_rank : task.units) = words.units_per_rank;
  std::tie(gang.ranks_per_node_min, gang.ranks_per_node_max) = *per_node;
  return {};
}

Result<std::vector<TaskSpec>> parse_submission(std::string_view json, const std::string& origin) {
  try {
    return submission_of(parse_without_duplicates(json));
  } catch (const nlohmann::json::parse_error& error) {
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: malformed JSON: {}", origin, line_and_column(json, error.byte),
                            cause_of(error)));
  } catch (const nlohmann::json::out_of_range& error) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: malformed JSON: {}", origin, error.what()));
  } catch (const Wrong& wrong) {
    return fail(ErrorCode::kInvalid,
                wrong.place.empty() ? fmt::format("{}: {}", origin, wrong.why)
                                    : fmt::format("{}: {}: {}", origin, wrong.place, wrong.why));
  }
}

Result<std::vector<TaskSpec>> load_submission(const std::string& path) {
  if (path == "-") {
    std::string text(kMaxFileBytes + 1, '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::cin.gcount()));
    if (text.size() > kMaxFileBytes)
      return fail(ErrorCode::kInvalid, "standard input is larger than 16 MiB");
    return parse_submission(text, "standard input");
  }
  if (std::error_code error; std::filesystem::is_directory(path, error))
    return fail(ErrorCode::kInvalid, fmt::format("file '{}' is a directory", path));
  const auto text = read_small_file(path, kMaxFileBytes);
  if (!text) return fail(text.error().code, "file " + text.error().message);
  return parse_submission(*text, path);
}

Result<DatasetUse> parse_dataset_use(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto name = text.substr(0, colon);
  const auto mode = colon == text.npos ? "ro" : text.substr(colon + 1);
  if (name.empty() || (mode != "ro" && mode != "rw"))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' names no dataset: write NAME, NAME:ro or NAME:rw", text));
  return DatasetUse{std::string(name), mode == "rw"};
}

}  // namespace tierpilot::tierctl
