#include "swap/plan_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/unique_fd.h"

namespace tierpilot::swap {
namespace {

constexpr off_t kMostBytes = 64 << 20;

// Speeds of tiers are measured anew in each run, and what differs a little is learned on the way.
std::string settings_of(const Session& session) {
  auto text = fmt::format("{} {} {}", TIERPILOT_VERSION, session.settings().rule,
                          session.settings().budget_bytes);
  for (const auto& tier : session.pool().tiers())
    text += fmt::format(" {}={}", tier.tier->name(), tier.tier->kind());
  return text;
}

Result<std::string> bytes_of(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0) return fail_errno(errno, "stat");
  if (!S_ISREG(status.st_mode) || status.st_size > kMostBytes)
    return fail(ErrorCode::kInvalid, "no plain file of at most 64 MiB");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const auto got = read(file, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, "read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Status write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto wrote = write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(errno, "write");
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

}  // namespace

Status restore_plans(Session& session, const std::filesystem::path& path) {
  // A pipe in its place is not to be waited for.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  if (!file) return fail_errno(errno, fmt::format("'{}'", path.string()));
  const auto bytes = bytes_of(file.get());
  auto plans = bytes ? read_plans(*bytes, settings_of(session)) : tl::unexpected(bytes.error());
  if (!plans)
    return fail(plans.error().code, fmt::format("'{}': {}", path.string(), plans.error().message));
  session.restore(std::move(*plans));
  return {};
}

Status keep_plans(Session& session, const std::filesystem::path& path) {
  const auto plans = session.kept();
  if (plans.steps.empty()) return {};  // nothing learned: what is there may be better
  auto beside = path.string() + ".XXXXXX";
  const UniqueFd file(mkostemp(beside.data(), O_CLOEXEC));
  if (!file) return fail_errno(errno, fmt::format("'{}' cannot be written", path.string()));
  auto status = write_all(file.get(), write_plans(plans, settings_of(session)));
  if (status && std::rename(beside.c_str(), path.c_str()) != 0)
    status = fail_errno(errno, "rename");
  if (status) return {};
  unlink(beside.c_str());
  return fail(status.error().code, fmt::format("'{}': {}", path.string(), status.error().message));
}

}  // namespace tierpilot::swap
