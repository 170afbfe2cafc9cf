#include "daemon/memory/pool/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tierpilot {
namespace {

constexpr size_t kMaxNameChars = 128;
constexpr size_t kMaxOwnerChars = 100;
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

// Hostile text must not reach a terminal or a log as it came.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, 40));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > 40 ? out + "..." : out;
}

Status check_name(std::string_view kind, std::string_view text, size_t max_chars) {
  if (is_name(text, max_chars)) return {};
  return fail(
      ErrorCode::kInvalid,
      fmt::format("{} name '{}' is not allowed: use 1 to {} of A-Z a-z 0-9 _ . - and do not "
                  "start with a dot",
                  kind, printable(text), max_chars));
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
  if (is_version(id.version)) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{} does not exist: versions start at 1", describe(id)));
}

Status check_owner(std::string_view owner) {
  return check_name("owner", owner, kMaxOwnerChars);
}

std::string describe(const DatasetId& id) {
  return fmt::format("dataset '{}' version {}", id.name, id.version);
}

std::string replica_file_name(const ReplicaFile& file) {
  return fmt::format("{}@{}@{}", file.id.name, file.id.version, file.bytes);
}

std::optional<ReplicaFile> parse_replica_file_name(std::string_view file_name) {
  const size_t first = file_name.find('@');
  const size_t second = first == std::string_view::npos ? first : file_name.find('@', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto name = file_name.substr(0, first);
  const auto version = parse_number(file_name.substr(first + 1, second - first - 1));
  const auto bytes = parse_number(file_name.substr(second + 1));
  if (!is_name(name, kMaxNameChars) || !version || !is_version(*version) || !bytes)
    return std::nullopt;
  return ReplicaFile{{std::string(name), *version}, *bytes};
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
