// The lines of `tierctl history export`; docs/reference/traces.md describes each member.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rpc/cluster.capnp.h"
#include "tools/tierctl/pseudonym.h"

namespace tierpilot::tierctl {

struct HistorySpan {
  int64_t from_ms = 0;  // tasks submitted within [from_ms, until_ms)
  int64_t until_ms = 0;
  int64_t exported_ms = 0;
};

nlohmann::ordered_json header_line(const HistorySpan& span, const Pseudonyms& names);
// Without `bytes` the dataset is not in the catalog any more.
nlohmann::ordered_json dataset_line(const std::string& name, std::optional<uint64_t> bytes,
                                    const Pseudonyms& names);
nlohmann::ordered_json task_line(wire::Task::Reader task, const Pseudonyms& names);

}  // namespace tierpilot::tierctl
