#include "base/sysroot.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace tierpilot {
namespace {

constexpr int kMaxId = 65535;

Result<int> parse_id(std::string_view text, std::string_view whole) {
  int id = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (err != std::errc{} || end != text.data() + text.size() || id < 0 || id > kMaxId)
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is not a list of ids such as 0-3,8", whole));
  return id;
}

}  // namespace

bool Sysroot::exists(const std::filesystem::path& path) const {
  std::error_code ignored;
  return std::filesystem::exists(resolve(path), ignored);
}

Result<std::string> Sysroot::read(const std::filesystem::path& path, size_t most_bytes) const {
  const auto real = resolve(path);
  UniqueFd fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, real.string());
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0) return fail_errno(errno, real.string());
    if (got == 0) break;
    text.append(chunk, static_cast<size_t>(got));
    if (text.size() > most_bytes)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: larger than {}", real.string(), format_bytes(most_bytes)));
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Result<int64_t> Sysroot::read_int(const std::filesystem::path& path) const {
  auto text = read(path);
  if (!text) return tl::unexpected(text.error());
  int64_t value = 0;
  const auto [end, err] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (err != std::errc{} || end != text->data() + text->size())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: '{}' is not a number", resolve(path).string(), *text));
  return value;
}

Result<std::vector<int>> Sysroot::read_id_list(const std::filesystem::path& path) const {
  auto text = read(path);
  if (!text) return tl::unexpected(text.error());
  return parse_id_list(*text);
}

std::vector<std::string> Sysroot::list(const std::filesystem::path& path) const {
  return try_list(path).value_or(std::vector<std::string>{});
}

Result<std::vector<std::string>> Sysroot::try_list(const std::filesystem::path& path) const {
  const auto real = resolve(path);
  std::vector<std::string> names;
  std::error_code err;
  // Not a range-for, whose steps throw.
  for (std::filesystem::directory_iterator at(real, err), end; !err && at != end; at.increment(err))
    names.push_back(at->path().filename().string());
  if (err && err != std::errc::no_such_file_or_directory)
    return fail_errno(err.value(), real.string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<int>> parse_id_list(std::string_view text) {
  std::vector<int> ids;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto item = text.substr(0, comma);
    const auto dash = item.find('-');
    auto first = parse_id(item.substr(0, dash), text);
    if (!first) return tl::unexpected(first.error());
    auto last = dash == std::string_view::npos ? first : parse_id(item.substr(dash + 1), text);
    if (!last) return tl::unexpected(last.error());
    for (int id = *first; id <= *last; ++id) ids.push_back(id);
    if (ids.size() > kMaxId + 1)
      return fail(ErrorCode::kInvalid, fmt::format("an id list of more than {} ids", kMaxId + 1));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return ids;
}

std::string format_id_list(const std::vector<int>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size();) {
    size_t end = i;
    while (end + 1 < ids.size() && ids[end + 1] == ids[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end == i ? fmt::format("{}", ids[i]) : fmt::format("{}-{}", ids[i], ids[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace tierpilot
