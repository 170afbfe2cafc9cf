#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "base/text/json_whole.h"
#include "coordinator/json_writer.h"
#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"

namespace tierpilot {

std::string past_runs_text(const PastRuns& runs) {
  JsonWriter out;
  out.object([&] {
    out.put("ended_ms", runs.ended_ms)
        .put("longest_before_s", runs.longest_before_s)
        .put("longest_s", runs.longest_s)
        .put("memory_before_bytes", runs.memory_before_bytes)
        .put("memory_bytes", runs.memory_bytes);
    out.put("milli", runs.milli).put("run_s", runs.run_s).put("runs", runs.runs);
    if (runs.start_s) out.put("start_s", *runs.start_s);
  });
  return out.take();
}

Result<PastRuns> parse_past_runs(const std::string& text) {
  PastRuns runs;
  try {
    const auto in = parse_json<nlohmann::json>(text);
    runs.ended_ms = whole_number<int64_t>(in.at("ended_ms"));
    in.at("longest_s").get_to(runs.longest_s);
    // Earlier versions knew one of each.
    runs.longest_before_s = in.value("longest_before_s", 0.0);
    if (in.contains("memory_before_bytes"))
      runs.memory_before_bytes = whole_number<uint64_t>(in.at("memory_before_bytes"));
    runs.memory_bytes = whole_number<uint64_t>(in.at("memory_bytes"));
    in.at("milli").get_to(runs.milli);
    in.at("run_s").get_to(runs.run_s);
    runs.runs = whole_number<uint32_t>(in.at("runs"));
    if (in.contains("start_s")) runs.start_s = in.at("start_s").get<double>();
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::kInvalid, std::string("store: runs of a name: ") + e.what());
  }
  return runs;
}

namespace records {

Status put_past_runs(Db& db, const PastRunsId& id, const std::string& runs) {
  auto query = db.query("INSERT OR REPLACE INTO past_runs(engine, name, body) VALUES(?,?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(engine_name(id.first)).bind(id.second).bind(runs).run();
}

Status remove_past_runs(Db& db, const PastRunsId& id) {
  auto query = db.query("DELETE FROM past_runs WHERE engine = ? AND name = ?");
  if (!query) return tl::unexpected(query.error());
  return query->bind(engine_name(id.first)).bind(id.second).run();
}

Result<PastRunsByName> past_runs(Db& db) {
  auto query = db.query("SELECT engine, name, body FROM past_runs");
  if (!query) return tl::unexpected(query.error());
  PastRunsByName all;
  for (;;) {
    const auto more = query->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return all;
    const auto engine = parse_engine(query->text(0));
    const auto runs = parse_past_runs(query->text(2));
    if (engine && runs) all[{*engine, query->text(1)}] = *runs;
  }
}

}  // namespace records
}  // namespace tierpilot
