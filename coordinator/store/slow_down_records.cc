#include <nlohmann/json.hpp>

#include "coordinator/json_text.h"
#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"

namespace tierpilot {

using sharing::LearnedPair;
using sharing::PairEffects;
using sharing::PairMeasured;
using sharing::UnitKind;

namespace {

constexpr const char* kCores = "cores";
constexpr const char* kGpu = "gpu";

std::string measured_text(const PairMeasured& measured) {
  JsonText out;
  out.object([&] {
    out.put("ln", measured.ln).put("times", measured.times).put("weight", measured.weight);
  });
  return out.take();
}

Result<PairMeasured> parse_measured(const std::string& text) {
  try {
    const auto in = nlohmann::json::parse(text);
    return PairMeasured{in.at("ln").get<double>(), in.at("weight").get<double>(),
                        in.at("times").get<uint32_t>()};
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::kInvalid, std::string("store: slow-down of a pair: ") + e.what());
  }
}

// Names come and go for years: what was measured long ago makes room.
Status forget_oldest(Db& db, const char* kind) {
  auto query = db.query(
      "DELETE FROM slow_downs WHERE unit_kind = ?1 AND measured_ms < (SELECT measured_ms FROM "
      "slow_downs WHERE unit_kind = ?1 ORDER BY measured_ms DESC LIMIT 1 OFFSET ?2)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(kind).bind(static_cast<int64_t>(PairEffects::kMostPairs) - 1).run();
}

}  // namespace

namespace records {

Status put_slow_downs(Db& db, const std::vector<LearnedPair>& pairs, int64_t now_ms) {
  for (const auto& pair : pairs) {
    auto query = db.query(
        "INSERT OR REPLACE INTO slow_downs(unit_kind, victim, neighbour, measured_ms, body) "
        "VALUES(?,?,?,?,?)");
    if (!query) return tl::unexpected(query.error());
    query->bind(pair.on == UnitKind::kGpu ? kGpu : kCores).bind(pair.victim).bind(pair.neighbour);
    if (auto put = query->bind(now_ms).bind(measured_text(pair.measured)).run(); !put) return put;
  }
  for (const char* kind : {kCores, kGpu})
    if (auto forgotten = forget_oldest(db, kind); !forgotten) return forgotten;
  return {};
}

Result<std::vector<LearnedPair>> slow_downs(Db& db) {
  auto query =
      db.query("SELECT unit_kind, victim, neighbour, body FROM slow_downs ORDER BY measured_ms");
  if (!query) return tl::unexpected(query.error());
  return read_all<LearnedPair>(*query, [](const Query& row) -> Result<LearnedPair> {
    const auto measured = parse_measured(row.text(3));
    if (!measured) return tl::unexpected(measured.error());
    return LearnedPair{row.text(0) == kGpu ? UnitKind::kGpu : UnitKind::kCores, row.text(1),
                       row.text(2), *measured};
  });
}

}  // namespace records
}  // namespace tierpilot
