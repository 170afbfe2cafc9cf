#include "daemon/probe/active/sweep.h"

#include <nlohmann/json.hpp>

#include "base/process/available_memory.h"
#include "daemon/probe/active/interference.h"
#include "daemon/probe/active/json.h"
#include "daemon/probe/active/session.h"
#include "daemon/probe/active/sweep_program.h"
#include "daemon/probe/active/tier_probe.h"

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

std::vector<std::string_view> figures_of(SweepKind kind) {
  switch (kind) {
    case SweepKind::kLatency:
      return {};
    case SweepKind::kLoaded:
      return {figure::kLoadRate};
    case SweepKind::kBandwidth:
      return {figure::kRate};
    case SweepKind::kMove:
      break;
  }
  return {figure::kEvict, figure::kPromote, figure::kFirstEvict, figure::kFirstPromote};
}

bool has_latency(SweepKind kind) {
  return kind == SweepKind::kLatency || kind == SweepKind::kLoaded;
}

const char* stream_name(StreamKind stream) {
  switch (stream) {
    case StreamKind::kRead:
      return "read";
    case StreamKind::kWrite:
      return "write";
    case StreamKind::kCopy:
      break;
  }
  return "copy";
}

void put_point(ordered_json& json, const SweepRow& row) {
  const auto& point = row.point;
  const char* pages = point.pages == PageSize::kBase ? "base" : "huge";
  if (point.kind == SweepKind::kMove) {
    json["slower_tier"] = row.slower_tier.name;
    json["pages"] = pages;
    json["batch_bytes"] = point.batch_bytes;
    return;
  }
  json["initiator_node"] = point.initiator_node;
  if (point.kind == SweepKind::kLatency) json["pages"] = pages;
  if (point.kind == SweepKind::kLoaded) json["load_percent"] = point.load_percent;
  if (point.kind != SweepKind::kBandwidth) return;
  json["operation"] = stream_name(point.stream);
  json["threads"] = point.threads;
}

}  // namespace

Result<std::vector<SweepRow>> run_sweep(const std::vector<TierSpec>& tiers,
                                        const std::vector<SweepPoint>& points,
                                        const ProbeOptions& wanted) {
  ProbeOptions options = wanted;
  if (!options.node_footprint_bytes)
    options.node_footprint_bytes =
        node_footprint_bytes(tiers, static_cast<uint64_t>(available_memory_bytes().value_or(0)));
  if (options.rounds < 1 || options.timeout.count() < 1)
    return fail(ErrorCode::kInvalid, "measuring takes at least one round and one millisecond");
  std::vector<TierSpec> of_points;
  for (const auto& point : points) {
    if (point.tier >= tiers.size() || point.slower_tier >= tiers.size())
      return fail(ErrorCode::kInvalid, "a point of the sweep is of no tier");
    of_points.push_back(tiers[point.tier]);
  }
  std::vector<SweepRow> rows;
  if (points.empty()) return rows;
  const Interference interference;
  ProbeSession session(of_points);
  session.run([&](const ObservationSink& sink) { probe_points(tiers, points, options, sink); },
              ProbeSession::Clock::now() + options.timeout,
              {figure::kLatency, figure::kLoadRate, figure::kRate, figure::kEvict, figure::kPromote,
               figure::kFirstEvict, figure::kFirstPromote});
  const auto surroundings = interference.surroundings();
  const auto measured = session.measurements();
  for (size_t i = 0; i < points.size(); ++i) {
    SweepRow row{points[i], tiers[points[i].tier], tiers[points[i].slower_tier], measured[i], {}};
    row.measured.surroundings = surroundings;
    for (const auto name : figures_of(points[i].kind))
      row.figures.emplace_back(name, session.ledger(i).median_of(name));
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json sweep_row_to_json(const SweepRow& row) {
  ordered_json json{{"tier", row.tier.name}};
  put_point(json, row);
  if (has_latency(row.point.kind)) json["latency_ns"] = latency_to_json(row.measured);
  for (const auto& [name, measure] : row.figures) put_measure(json, name, measure);
  json["method"] = row.measured.method;
  json["spread"] = row.measured.spread;
  json["rounds"] = row.measured.rounds;
  put_quality(json, row.measured.quality());
  return json;
}

}  // namespace tierpilot
