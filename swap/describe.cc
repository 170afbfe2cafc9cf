#include "swap/describe.h"

#include <nlohmann/json.hpp>

namespace tierpilot::swap {
namespace {

using nlohmann::json;

json tiers_of(const HostPool& pool) {
  json list = json::array();
  const auto use = pool.use();
  for (size_t i = 0; i < use.size(); ++i) {
    const auto& tier = pool.tiers()[i];
    list.push_back({{"name", tier.tier->name()},
                    {"kind", tier.tier->kind()},
                    {"capacity_bytes", tier.tier->capacity_bytes()},
                    {"read_gb_per_s", tier.read_gb_per_s},
                    {"write_gb_per_s", tier.write_gb_per_s},
                    {"latency_ns", tier.latency_ns},
                    {"used_bytes", use[i].used_bytes},
                    {"peak_bytes", use[i].peak_bytes},
                    {"errors", use[i].errors}});
  }
  return list;
}

json statistics_of(Session& session, std::string_view plans_refused) {
  const auto s = session.statistics();
  json by_tier = json::object();
  const auto use = session.pool().use();
  for (size_t i = 0; i < use.size(); ++i)
    by_tier[session.pool().tiers()[i].tier->name()] = use[i].peak_bytes;
  return {{"policy", session.settings().rule},
          {"device", session.device().name()},
          {"pinned_bytes", session.device().pinned_bytes()},
          {"budget_bytes", session.budget_bytes()},
          {"steps", s.steps},
          {"known_steps", s.known_steps},
          {"restored_steps", s.restored_steps},
          {"learning_steps", s.learning_steps},
          {"plans_refused", plans_refused},
          {"saves", s.saves},
          {"saved_bytes", s.saved_bytes},
          {"copies_out", s.copies_out},
          {"bytes_out", s.bytes_out},
          {"copies_in", s.copies_in},
          {"bytes_in", s.bytes_in},
          {"stalls", s.stalls},
          {"stall_ns", s.stall_ns},
          {"late", s.late},
          {"given_back", s.given_back},
          {"giving_ns", s.giving_ns},
          {"refused", s.refused},
          {"lost", s.lost},
          {"segments", s.segments},
          {"recomputed_segments", s.recomputed_segments},
          {"state_saves", s.state_saves},
          {"state_bytes", s.state_bytes},
          {"state_staying_bytes", s.state_staying_bytes},
          {"over_budget_steps", s.over_budget_steps},
          {"failures", s.failures},
          {"device_peak_bytes", s.device_peak_bytes},
          {"saved_peak_bytes", s.saved_peak_bytes},
          {"last_step_ns", s.last_step_ns},
          {"last_stall_ns", s.last_stall_ns},
          {"last_passes_ns", s.last_passes_ns},
          {"last_others_ns", s.last_others_ns},
          {"last_peak_bytes", s.last_peak_bytes},
          {"least_bytes", s.least_bytes},
          {"host_bytes_by_tier", by_tier}};
}

json step_of(Session& session) {
  const auto step = session.last_step();
  json storages = json::array();
  for (const auto& life : step.storages)
    storages.push_back({{"place", life.place},
                        {"kind", life.kind},
                        {"bytes", life.bytes},
                        {"saved_ns", life.saved_ns},
                        {"left_ns", life.left_ns},
                        {"fetched_ns", life.fetched_ns},
                        {"back_ns", life.back_ns},
                        {"used_ns", life.used_ns},
                        {"ended_ns", life.ended_ns}});
  json segments = json::array();
  for (const auto& life : step.segments)
    segments.push_back({{"place", life.place},
                        {"began_ns", life.began_ns},
                        {"ended_ns", life.ended_ns},
                        {"again", life.again}});
  return {{"step_ns", step.step_ns},
          {"stall_ns", step.stall_ns},
          {"peak_bytes", step.peak_bytes},
          {"storages", storages},
          {"segments", segments}};
}

// Names of tiers and reasons are of paths, which may be any bytes.
std::string text_of(const json& said) {
  return said.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string describe(Session& session, std::string_view plans_refused, std::string_view what) {
  if (what == "tiers") return text_of(tiers_of(session.pool()));
  if (what == "statistics") return text_of(statistics_of(session, plans_refused));
  if (what == "step") return text_of(step_of(session));
  return "{}";
}

}  // namespace tierpilot::swap
