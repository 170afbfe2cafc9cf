#include "daemon/agent/tasks/swap_room.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "base/log.h"
#include "daemon/agent/tasks/attempt.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

using Kind = SwapTierWords::Kind;

void remove_empty(const std::vector<std::string>& folders) {
  for (const auto& folder : folders) {
    std::error_code error;
    fs::remove(folder, error);
    if (error) spdlog::warn("folder {} cannot be removed: {}", folder, error.message());
  }
}

// 0: it has no limit that is known.
uint64_t memory_of(const Assignment& assignment) {
  if (assignment.memory_limit_bytes > 0) return assignment.memory_limit_bytes;
  return assignment.part ? assignment.part->memory_bytes : 0;
}

}  // namespace

uint64_t SwapGrant::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& tier : tiers)
    if (tier.kind != Kind::kDirectory) bytes += tier.bytes;
  return bytes;
}

std::vector<std::string> SwapGrant::folders() const {
  std::vector<std::string> folders;
  for (const auto& tier : tiers)
    if (tier.kind == Kind::kDirectory) folders.push_back(tier.directory);
  return folders;
}

SwapRoom::SwapRoom(std::vector<SwapTierWords> tiers, const std::string& node) {
  for (auto& words : tiers) {
    const auto folder = words.kind == Kind::kDirectory
                            ? fs::path(words.directory) / ("tierpilot-" + node)
                            : fs::path();
    const auto bytes = words.bytes;
    tiers_.push_back({std::move(words), folder, bytes});
  }
}

std::vector<fs::path> SwapRoom::folders() const {
  std::vector<fs::path> folders;
  for (const auto& tier : tiers_)
    if (!tier.folder.empty()) folders.push_back(tier.folder);
  return folders;
}

Result<SwapGrant> SwapRoom::take(AttemptId attempt, uint64_t bytes) {
  const uint64_t left = offered_bytes() - given_bytes();
  if (bytes > left)
    return fail(ErrorCode::kExhausted,
                fmt::format("{}: asks for {} of room for swapping, {} is left on this node",
                            label(attempt), format_bytes(bytes), format_bytes(left)));
  SwapGrant grant;
  std::vector<Part> parts;
  for (size_t i = 0; i < tiers_.size() && bytes > 0; ++i) {
    const uint64_t part = std::min(bytes, tiers_[i].left_bytes);
    if (part == 0) continue;
    bytes -= part;
    parts.emplace_back(i, part);
    grant.tiers.push_back(tiers_[i].words);
    grant.tiers.back().bytes = part;
    if (!tiers_[i].folder.empty())
      grant.tiers.back().directory = tiers_[i].folder / to_string(attempt);
  }
  std::vector<std::string> made;
  for (const auto& folder : grant.folders()) {
    if (::mkdir(folder.c_str(), 0700) != 0) {
      const int error = errno;
      remove_empty(made);
      return fail_errno(error, fmt::format("folder {} for swapping cannot be made", folder));
    }
    made.push_back(folder);
  }
  for (const auto& [tier, part] : parts) tiers_[tier].left_bytes -= part;
  given_[attempt] = std::move(parts);
  if (!made.empty()) folders_[attempt] = std::move(made);
  return grant;
}

void SwapRoom::give_back(AttemptId attempt) {
  const auto given = given_.extract(attempt);
  if (!given) return;
  for (const auto& [tier, part] : given.mapped()) tiers_[tier].left_bytes += part;
}

void SwapRoom::remove_folders(AttemptId attempt) {
  if (const auto folders = folders_.extract(attempt))
    for (const auto& folder : folders.mapped()) remover_->remove(folder);
}

uint64_t SwapRoom::offered_bytes() const {
  uint64_t bytes = 0;
  for (const auto& tier : tiers_) bytes += tier.words.bytes;
  return bytes;
}

uint64_t SwapRoom::given_bytes() const {
  uint64_t bytes = 0;
  for (const auto& tier : tiers_) bytes += tier.words.bytes - tier.left_bytes;
  return bytes;
}

std::vector<MetricValue> SwapRoom::metrics() const {
  if (tiers_.empty()) return {};
  return {{"swap_room_bytes", static_cast<double>(offered_bytes())},
          {"swap_room_given_bytes", static_cast<double>(given_bytes())}};
}

std::vector<std::pair<std::string, std::string>> swap_environment(const Assignment& assignment,
                                                                  const SwapGrant& grant) {
  std::string tiers;
  for (const auto& tier : grant.tiers)
    tiers += fmt::format("{}{}={}", tiers.empty() ? "" : ",", tier.name(), tier.bytes);
  std::vector<std::pair<std::string, std::string>> env{{"TIERPILOT_SWAP_TIERS", tiers}};
  if (const uint64_t memory = memory_of(assignment); memory > 0)
    env.emplace_back("TIERPILOT_SWAP_BUDGET", std::to_string(memory));
  return env;
}

}  // namespace tierpilot::agent
