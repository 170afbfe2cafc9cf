#include <nlohmann/json.hpp>

#include "coordinator/json_text.h"
#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"
#include "model/names.h"

namespace tierpilot::records {
namespace {

using sharing::PairEffects;
using sharing::PairMeasured;

constexpr std::array<std::string_view, 3> kKinds{"on_cores", "on_gpus", "runs"};

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
    return fail(ErrorCode::kInvalid,
                std::string("store: what was measured of a pair: ") + e.what());
  }
}

// Names come and go for years: what was measured long ago makes room.
Status forget_oldest(Db& db, std::string_view kind) {
  auto query = db.query(
      "DELETE FROM pair_effects WHERE kind = ?1 AND measured_ms < (SELECT measured_ms FROM "
      "pair_effects WHERE kind = ?1 ORDER BY measured_ms DESC LIMIT 1 OFFSET ?2)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(kind).bind(static_cast<int64_t>(PairEffects::kMostPairs) - 1).run();
}

}  // namespace

Status put_pairs(Db& db, PairKind kind, const std::vector<MeasuredPair>& pairs, int64_t now_ms) {
  for (const auto& pair : pairs) {
    auto query = db.query(
        "INSERT OR REPLACE INTO pair_effects(kind, first, second, measured_ms, body) "
        "VALUES(?,?,?,?,?)");
    if (!query) return tl::unexpected(query.error());
    query->bind(name_in(kKinds, kind)).bind(pair.first).bind(pair.second);
    if (auto put = query->bind(now_ms).bind(measured_text(pair.measured)).run(); !put) return put;
  }
  return forget_oldest(db, name_in(kKinds, kind));
}

Result<std::vector<MeasuredPair>> pairs(Db& db, PairKind kind) {
  auto query =
      db.query("SELECT first, second, body FROM pair_effects WHERE kind = ? ORDER BY measured_ms");
  if (!query) return tl::unexpected(query.error());
  query->bind(name_in(kKinds, kind));
  return read_all<MeasuredPair>(*query, [](const Query& row) -> Result<MeasuredPair> {
    const auto measured = parse_measured(row.text(2));
    if (!measured) return tl::unexpected(measured.error());
    return MeasuredPair{row.text(0), row.text(1), *measured};
  });
}

}  // namespace tierpilot::records
