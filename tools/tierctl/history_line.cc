#include "tools/tierctl/history_line.h"

#include "tools/cluster/message_json.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

// A time of the store: 0 means that it has not come.
ordered_json time_or_null(int64_t at_ms) {
  return at_ms ? ordered_json(at_ms) : ordered_json(nullptr);
}

ordered_json uses(wire::TaskSpec::Reader spec, const Pseudonyms& names) {
  auto list = ordered_json::array();
  for (const auto use : spec.getDatasets())
    list.push_back(
        {{"dataset", names.of("dataset", use.getDataset().cStr())}, {"write", use.getWrite()}});
  return list;
}

// Ranks are tasks of their own, with the gang's units and memory.
void add_gang(wire::Task::Reader task, ordered_json& line) {
  const auto spec = task.getSpec();
  if (task.getGang()) {
    line["rank_of"] = task.getGang();
    line["rank"] = task.getRank();
  } else if (spec.hasGang()) {
    const uint32_t gpus = spec.getGang().getGpusPerRank();
    line["gang"] = {{"ranks", spec.getGang().getRanks()},
                    {"units_per_rank", gpus > 0 ? gpus : spec.getUnits()},
                    {"engine", spec.getGang().getEngine().cStr()},
                    {"restarts", task.getRestarts()}};
  }
}

void add_served(wire::Task::Reader task, ordered_json& line) {
  if (!task.hasServed()) {
    line["served_bytes"] = nullptr;
    line["served_bytes_unavailable"] = "no node has reported that its data was served";
    return;
  }
  const auto served = task.getServed();
  line["served_bytes"] =
      served.getLocalBytes() + served.getPromotedBytes() + served.getFetchedBytes();
  line["served"] = message_json(served);
}

void add_exit(wire::Task::Reader task, ordered_json& line) {
  if (!task.hasExit()) {
    line["wall_ns"] = nullptr;
    line["wall_ns_unavailable"] = "no node has reported its end";
    return;
  }
  const auto exit = task.getExit();
  line["exit"] = exit.getHow().cStr();
  line["exit_code"] = exit.getCode();
  line["wall_ns"] = exit.getWallNs();
  line["cpu_user_ns"] = exit.getCpuUserNs();
  line["cpu_system_ns"] = exit.getCpuSystemNs();
  line["max_resident_bytes"] = exit.getMaxResidentBytes();
}

}  // namespace

ordered_json header_line(const HistorySpan& span, const Pseudonyms& names) {
  return {{"schema", "tierpilot-history"},   {"version", 1},
          {"tierpilot", TIERPILOT_VERSION},  {"exported_ms", span.exported_ms},
          {"from_ms", span.from_ms},         {"until_ms", span.until_ms},
          {"anonymised", names.anonymous()}, {"pseudonyms_keep", names.keep()}};
}

ordered_json dataset_line(const std::string& name, std::optional<uint64_t> bytes,
                          const Pseudonyms& names) {
  ordered_json line{{"dataset", names.of("dataset", name)}};
  if (bytes) {
    line["bytes"] = *bytes;
  } else {
    line["bytes"] = nullptr;
    line["bytes_unavailable"] = "it is not in the catalog any more";
  }
  return line;
}

ordered_json task_line(wire::Task::Reader task, const Pseudonyms& names) {
  const auto spec = task.getSpec();
  ordered_json line{{"task", task.getId()},
                    {"submission", task.getSubmission()},
                    {"name", names.of("task", task.getName().cStr())},
                    {"state", task.getState().cStr()},
                    {"user", names.of("user", task.getUser().cStr())},
                    {"submitted_ms", task.getSubmittedMs()},
                    {"started_ms", time_or_null(task.getStartedMs())},
                    {"finished_ms", time_or_null(task.getFinishedMs())},
                    {"node", names.of("node", task.getNode().cStr())},
                    {"policy", task.getPolicy().cStr()},
                    {"attempts", task.getAttempt()},
                    {"units", spec.getUnits()},
                    {"memory_bytes", spec.getMemoryBytes()},
                    {"swap_room_bytes", spec.getSwapRoomBytes()},
                    {"float_operations", spec.getFloatOperations()},
                    {"int_operations", spec.getIntOperations()},
                    {"uses", uses(spec, names)}};
  add_gang(task, line);
  add_served(task, line);
  add_exit(task, line);
  return line;
}

}  // namespace tierpilot::tierctl
