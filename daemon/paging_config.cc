#include "daemon/paging_config.h"

#include <fmt/format.h>

namespace tierpilot {
namespace {

constexpr int64_t kMaxPid = 1 << 22;  // PID_MAX_LIMIT of the kernel

// A text that `parse` understands, or nothing.
template <class Parse>
auto parsed(ConfigSection& section, std::string_view key, std::string fallback, Parse parse) {
  const auto value = parse(section.text(key, fallback));
  if (!value) section.complain(key, value.error().message);
  return value ? *value : *parse(fallback);
}

std::optional<TrackerKind> read_tracker(ConfigSection& section) {
  const auto name = section.text("tracker", "auto");
  if (name == "auto") return {};
  const auto kind = tracker_from_name(name);
  if (kind) return *kind;
  section.complain("tracker", kind.error().message + ", or \"auto\"");
  return {};
}

PagingMatch read_match(ConfigSection& section) {
  PagingMatch match{.pid = static_cast<pid_t>(section.integer("pid", 0, 1, kMaxPid)),
                    .name = section.text("name", ""),
                    .cgroup = section.text("cgroup", ""),
                    .task = section.text("task", ""),
                    .dataset = section.text("dataset", "")};
  if (!section.has("pid") && match.name.empty() && match.cgroup.empty() && match.task.empty() &&
      match.dataset.empty())
    section.complain("name", "a rule needs a condition: pid, name, cgroup, task or dataset");
  if (match.name.size() > 15)
    section.complain("name", "is compared with the first 15 characters, which the kernel keeps");
  return match;
}

std::string read_tier(ConfigSection& section, PagingPolicy policy) {
  const auto tier = section.text("tier", "");
  const bool is_static = policy == PagingPolicy::kStatic;
  if (is_static && tier.empty()) section.complain("tier", "is missing: policy \"static\" needs it");
  if (!is_static && !tier.empty()) section.complain("tier", "is for policy \"static\" only");
  if (const auto found = find_tier({}, tier);
      !tier.empty() && found.error().code == ErrorCode::kInvalid)
    section.complain("tier", found.error().message);
  return tier;
}

PagingRule read_rule(ConfigSection& section, size_t number) {
  PagingRule rule{.match = read_match(section)};
  rule.group.name = section.text("group", fmt::format("rule {}", number));
  rule.group.policy = parsed(section, "policy", "heat", policy_from_name);
  if (section.has("mode")) rule.mode = parsed(section, "mode", "observe", mode_from_name);
  if (section.has("fast_budget")) rule.group.fast_budget_bytes = section.bytes("fast_budget", 0);
  rule.tier = read_tier(section, rule.group.policy);
  return rule;
}

bool placed_alike(const PagingRule& a, const PagingRule& b) {
  return a.group.policy == b.group.policy && a.tier == b.tier &&
         a.group.fast_budget_bytes == b.group.fast_budget_bytes;
}

}  // namespace

PagingConfig read_paging(ConfigReader& reader) {
  auto section = reader.section("placement");
  PagingConfig config;
  config.enabled = section.boolean("enabled", true);
  config.bytes_per_s = section.bytes("cap", 256 << 20);
  config.cpu_share = section.number("cpu_share", 0.05, 0, 1);
  config.interval_ms = section.integer("interval_ms", 1'000, 50, 600'000);
  config.scan_interval_ms = section.integer("scan_interval_ms", 5'000, 100, 600'000);
  config.tracker = read_tracker(section);
  for (auto& table : section.tables("rule")) {
    const auto rule = read_rule(table, config.rules.size() + 1);
    for (const auto& other : config.rules)
      if (other.group.name == rule.group.name && !placed_alike(other, rule))
        table.complain("group", fmt::format("'{}' has another policy, tier or fast_budget in a "
                                            "rule before, and a group can have but one",
                                            rule.group.name));
    config.rules.push_back(rule);
  }
  return config;
}

}  // namespace tierpilot
