#include "policies/swap/learning/kept_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/content_digest.h"
#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {
namespace {

using nlohmann::json;
constexpr std::string_view kOfAnyVersion = "tierpilot-swap-plans ";
constexpr std::string_view kMagic = "tierpilot-swap-plans 2 ";
constexpr size_t kDigestChars = 32, kMostSteps = 256, kMostSaves = 1'000'000;
constexpr int64_t kMostNs = int64_t{1} << 60;

tl::unexpected<Error> wrong(std::string why) {
  return fail(ErrorCode::kInvalid, std::move(why));
}

json json_of(const KeptStep& kept) {
  json saves = json::array();
  for (const auto& save : kept.step.saves)
    saves.push_back({save.place, save.kind, save.bytes, save.convolution_input, save.held});
  std::string away;
  for (const char leaves : kept.away) away += leaves ? '1' : '0';
  return {{"saves", saves},
          {"uses", kept.step.uses},
          {"time_ns", kept.step.time_ns},
          {"other_bytes", kept.step.other_bytes},
          {"away", away},
          {"margin_bytes", kept.margin_bytes},
          {"explorations", kept.explorations},
          {"widened", kept.widened},
          {"next_kind", kept.next_kind}};
}

std::optional<int64_t> number(const json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most))
    return std::nullopt;
  const auto found = value.get<int64_t>();
  return found < least || found > most ? std::nullopt : std::optional(found);
}

Result<int64_t> field(const json& object, const char* key, int64_t least, int64_t most) {
  const auto found = object.find(key);
  const auto value = found == object.end() ? std::nullopt : number(*found, least, most);
  if (!value) return wrong(fmt::format("\"{}\" has to be a number of at most {}", key, most));
  return *value;
}

const json* list(const json& object, const char* key, size_t most) {
  const auto found = object.find(key);
  return found != object.end() && found->is_array() && found->size() <= most ? &*found : nullptr;
}

// Numbers from 0 whose sum stays within `most`; nothing where they are not.
std::optional<std::vector<int64_t>> amounts(const json& object, const char* key, size_t count,
                                            int64_t each, int64_t sum) {
  const auto* values = list(object, key, count);
  if (!values || values->size() != count) return std::nullopt;
  std::vector<int64_t> found;
  for (const auto& value : *values) {
    const auto amount = number(value, 0, std::min(each, sum));
    if (!amount) return std::nullopt;
    if (sum != std::numeric_limits<int64_t>::max()) sum -= *amount;
    found.push_back(*amount);
  }
  return found;
}

Result<std::vector<SavedStorage>> saves_of(const json& object) {
  const auto* saves = list(object, "saves", kMostSaves);
  if (!saves || saves->empty()) return wrong("\"saves\" has to be a list");
  std::vector<SavedStorage> found;
  int64_t left = kMaxBytes;
  for (const auto& save : *saves) {
    if (!save.is_array() || save.size() != 5 || !save[0].is_number_unsigned() ||
        !save[3].is_boolean() || !save[4].is_boolean())
      return wrong(fmt::format("saves[{}]: wrong fields", found.size()));
    const auto kind = number(save[1], 0, std::numeric_limits<uint32_t>::max());
    const auto bytes = number(save[2], 1, left);
    if (!kind || !bytes) return wrong(fmt::format("saves[{}]: wrong numbers", found.size()));
    left -= *bytes;
    found.push_back({.place = save[0].get<uint64_t>(),
                     .kind = static_cast<uint32_t>(*kind),
                     .bytes = *bytes,
                     .convolution_input = save[3].get<bool>(),
                     .held = save[4].get<bool>()});
  }
  return found;
}

Result<std::vector<uint32_t>> uses_of(const json& object, size_t saves) {
  const auto* uses = list(object, "uses", saves);
  if (!uses) return wrong("\"uses\" has to be a list");
  std::vector<char> seen(saves);
  std::vector<uint32_t> found;
  for (const auto& use : *uses) {
    const auto save = number(use, 0, static_cast<int64_t>(saves) - 1);
    if (!save || std::exchange(seen[static_cast<size_t>(*save)], true))
      return wrong(fmt::format("uses[{}] is none of the saves, or again", found.size()));
    found.push_back(static_cast<uint32_t>(*save));
  }
  return found;
}

Result<KeptStep> step_of(const json& object) {
  if (!object.is_object()) return wrong("no object");
  KeptStep kept;
  auto saves = saves_of(object);
  if (!saves) return tl::unexpected(saves.error());
  kept.step.saves = std::move(*saves);
  auto uses = uses_of(object, kept.step.saves.size());
  if (!uses) return tl::unexpected(uses.error());
  kept.step.uses = std::move(*uses);
  const auto intervals = kept.step.events() + 1;
  // What a graph of the step may have (graph_builder.h).
  auto times = amounts(object, "time_ns", intervals, kMaxBytes, kMostNs);
  auto others = amounts(object, "other_bytes", intervals, kMaxBytes, kMostNs / 2);
  if (!times || !others)
    return wrong("\"time_ns\" and \"other_bytes\" have to have a number for each interval");
  kept.step.time_ns = std::move(*times);
  kept.step.other_bytes = std::move(*others);
  const auto away = object.find("away");
  if (away == object.end() || !away->is_string()) return wrong("\"away\" has to be a text");
  for (const char mark : away->get_ref<const std::string&>()) {
    if (mark != '0' && mark != '1') return wrong("\"away\" has to be of 0 and 1");
    kept.away.push_back(mark == '1');
  }
  if (kept.away.size() != kept.step.saves.size()) return wrong("\"away\" has another length");
  const auto margin = field(object, "margin_bytes", -kMaxBytes, kMaxBytes);
  const auto explorations = field(object, "explorations", 0, 1'000'000);
  const auto widened = field(object, "widened", 0, 1'000'000);
  const auto next_kind = field(object, "next_kind", 0, kMaxBytes);
  for (const auto* each : {&margin, &explorations, &widened, &next_kind})
    if (!*each) return tl::unexpected(each->error());
  kept.margin_bytes = *margin;
  kept.explorations = static_cast<int>(*explorations);
  kept.widened = static_cast<size_t>(*widened);
  kept.next_kind = static_cast<size_t>(*next_kind);
  return kept;
}

Result<KeptSegments> segments_of(const json& object) {
  const auto first = object.find("first");
  const auto* again = list(object, "again", kMostSaves);
  if (first == object.end() || !first->is_number_unsigned() || !again)
    return wrong("needs \"first\" and \"again\"");
  KeptSegments kept{.first = first->get<uint64_t>()};
  for (const auto& entry : *again) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_unsigned() ||
        !entry[1].is_boolean())
      return wrong("\"again\" has to be of places and choices");
    kept.again.emplace_back(entry[0].get<uint64_t>(), entry[1].get<bool>());
  }
  return kept;
}

template <class Kept, class Read>
Status read_list(const json& body, const char* key, std::vector<Kept>& into, const Read& read) {
  const auto* entries = list(body, key, kMostSteps);
  if (!entries) return wrong(fmt::format("\"{}\" has to be a list", key));
  for (const auto& entry : *entries) {
    if (!entry.is_object()) return wrong(fmt::format("{}[{}]: no object", key, into.size()));
    auto kept = read(entry);
    if (!kept) return wrong(fmt::format("{}[{}]: {}", key, into.size(), kept.error().message));
    into.push_back(std::move(*kept));
  }
  return {};
}

}  // namespace

bool may_be_plans(std::string_view bytes) {
  return bytes.substr(0, kOfAnyVersion.size()) == kOfAnyVersion.substr(0, bytes.size());
}

std::string write_plans(const KeptPlans& plans, std::string_view settings) {
  json steps = json::array(), segments = json::array();
  for (size_t i = 0; i < std::min(plans.steps.size(), kMostSteps); ++i)
    steps.push_back(json_of(plans.steps[i]));
  for (size_t i = 0; i < std::min(plans.segments.size(), kMostSteps); ++i)
    segments.push_back({{"first", plans.segments[i].first}, {"again", plans.segments[i].again}});
  json body{{"settings", settings}, {"steps", steps}, {"segments", segments}};
  if (plans.state_room) body["state_room"] = *plans.state_room;
  const auto text = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return fmt::format("{}{}\n{}", kMagic, to_string(digest_of(text)), text);
}

Result<KeptPlans> read_plans(std::string_view bytes, std::string_view settings) {
  const auto begin = kMagic.size() + kDigestChars + 1;
  if (!may_be_plans(bytes)) return wrong("it is no plan file");
  if (!bytes.starts_with(kMagic) || bytes.size() < begin) return wrong("no plans of this version");
  const auto text = bytes.substr(begin);
  if (bytes.substr(kMagic.size(), kDigestChars) != to_string(digest_of(text)))
    return wrong("damaged: its checksum is another one");
  // Of what is nested deeper a few bytes take gigabytes.
  constexpr int kDeepest = 8;
  const auto flat = [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; };
  const auto body = json::parse(text, flat, false);
  if (!body.is_object()) return wrong("no JSON object");
  const auto under = body.find("settings");
  if (under == body.end() || !under->is_string() ||
      under->get_ref<const std::string&>() != settings)
    return wrong("learned under another budget, policy, version or other tiers");
  KeptPlans plans;
  if (auto status = read_list(body, "steps", plans.steps, step_of); !status)
    return tl::unexpected(status.error());
  if (auto status = read_list(body, "segments", plans.segments, segments_of); !status)
    return tl::unexpected(status.error());
  if (body.contains("state_room")) {
    const auto room = field(body, "state_room", 0, std::numeric_limits<int64_t>::max());
    if (!room) return tl::unexpected(room.error());
    plans.state_room = *room;
  }
  return plans;
}

}  // namespace tierpilot::swap
