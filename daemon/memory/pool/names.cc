#include "daemon/memory/pool/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text/printable.h"

namespace tierpilot {
namespace {

constexpr size_t kMaxNameChars = 128;
constexpr size_t kMaxOwnerChars = 100;
constexpr size_t kMostShownBytes = 40;  // of a name that is refused
constexpr std::string_view kDraftPrefix = ".tmp@";
constexpr std::string_view kPrivatePrefix = ".write@";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

bool is_version(uint64_t version) {
  return version > 0 && version < UINT64_MAX;
}

bool is_name(std::string_view text, size_t max_chars) {
  return !text.empty() && text.size() <= max_chars && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), is_name_char);
}

Status check_name(std::string_view kind, std::string_view text, size_t max_chars) {
  if (is_name(text, max_chars)) return {};
  return fail(
      ErrorCode::kInvalid,
      fmt::format("{} name '{}' is not allowed: use 1 to {} of A-Z a-z 0-9 _ . - and do not "
                  "start with a dot",
                  kind, printable(text, kMostShownBytes), max_chars));
}

// Only the form that std::to_string writes: "007" would be a second name of the same replica.
std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text != std::to_string(value)) return std::nullopt;
  return value;
}

}  // namespace

Status check_dataset_name(std::string_view name) {
  return check_name("dataset", name, kMaxNameChars);
}

Status check_dataset_id(const DatasetId& id) {
  if (auto status = check_dataset_name(id.name); !status) return status;
  if (!is_version(id.version))
    return fail(ErrorCode::kInvalid,
                fmt::format("{} does not exist: versions start at 1", describe(id)));
  if (!id.digest.known())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no checksum tells which bytes are meant", describe(id)));
  return {};
}

Status check_owner(std::string_view owner) {
  return check_name("owner", owner, kMaxOwnerChars);
}

std::string describe(const DatasetId& id) {
  return fmt::format("dataset '{}' version {}", id.name, id.version);
}

std::string replica_file_name(const ReplicaFile& file) {
  const auto sized = fmt::format("{}@{}@{}", file.id.name, file.id.version, file.bytes);
  return file.id.digest.known() ? sized + "@" + to_string(file.id.digest) : sized;
}

std::optional<ReplicaFile> parse_replica_file_name(std::string_view file_name) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= file_name.size();) {
    const size_t end = std::min(file_name.find('@', at), file_name.size());
    parts.push_back(file_name.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() != 3 && parts.size() != 4) return std::nullopt;
  const auto version = parse_number(parts[1]);
  const auto bytes = parse_number(parts[2]);
  const auto digest =
      parts.size() == 4 ? parse_content_digest(parts[3]) : std::optional(ContentDigest{});
  const bool stamped = digest && digest->known() == (parts.size() == 4);
  if (!is_name(parts[0], kMaxNameChars) || !version || !is_version(*version) || !bytes || !stamped)
    return std::nullopt;
  return ReplicaFile{{std::string(parts[0]), *version, *digest}, *bytes};
}

std::string draft_file_name(uint64_t serial) {
  return fmt::format("{}{}", kDraftPrefix, serial);
}

std::string private_file_name(std::string_view owner, std::string_view dataset) {
  return fmt::format("{}{}@{}", kPrivatePrefix, owner, dataset);
}

bool is_transient_file_name(std::string_view file_name) {
  return file_name.starts_with(kDraftPrefix) || file_name.starts_with(kPrivatePrefix);
}

}  // namespace tierpilot
