#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text/json_text.h"
#include "base/text/json_whole.h"
#include "coordinator/json_writer.h"
#include "coordinator/store/records.h"
#include "model/names.h"

namespace tierpilot::records {
namespace {

using sharing::PairEffects;
using sharing::PairMeasured;

constexpr std::array<std::string_view, 4> kKinds{"on_cores", "on_gpus", "runs", "gpu_runs"};

std::string measured_text(const PairMeasured& measured) {
  JsonWriter out;
  out.object([&] {
    out.put("ln", measured.ln).put("times", measured.times).put("weight", measured.weight);
    if (measured.thought != 0) out.put("thought", measured.thought);
  });
  return out.take();
}

Result<PairMeasured> parse_measured(const std::string& text) {
  try {
    const auto in = parse_json<nlohmann::json>(text);
    return PairMeasured{in.at("ln").get<double>(), in.at("weight").get<double>(),
                        whole_number<uint32_t>(in.at("times")), in.value("thought", 0.0)};
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
  std::vector<MeasuredPair> all;
  size_t damaged = 0;
  for (;;) {
    const auto more = query->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (const auto measured = parse_measured(query->text(2)))
      all.push_back({query->text(0), query->text(1), *measured});
    else if (damaged++ == 0)
      spdlog::warn("{}: such rows are left out, and measured anew", measured.error().message);
  }
  return all;
}

}  // namespace tierpilot::records
