#include "daemon/topology/watcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/topology/changes.h"

namespace tierpilot {
namespace {

std::string newly_unread(const Topology& known, const Topology& seen) {
  for (const auto& path : seen.unread)
    if (std::find(known.unread.begin(), known.unread.end(), path) == known.unread.end())
      return path;
  return {};
}

}  // namespace

TopologyWatcher::TopologyWatcher(Options options, Topology known, const Clock& clock)
    : TopologyWatcher(std::move(options), std::move(known), clock, std::nullopt, "") {
  if (auto socket = UeventSocket::open())
    socket_ = std::move(*socket);
  else
    deaf_reason_ = socket.error().message;
}

TopologyWatcher::TopologyWatcher(Options options, Topology known, const Clock& clock,
                                 std::optional<UeventSocket> socket, std::string deaf_reason)
    : options_(std::move(options)),
      known_(std::move(known)),
      clock_(clock),
      socket_(std::move(socket)),
      deaf_reason_(std::move(deaf_reason)),
      looked_ns_(clock.boot_ns()) {}

std::string TopologyWatcher::source() const {
  if (socket_) return "the kernel announces changes of memory";
  return fmt::format("looking every {} s: {}", options_.poll_deaf_ns / 1'000'000'000, deaf_reason_);
}

void TopologyWatcher::on_readable() {
  if (socket_ && socket_->drain()) announced();
}

void TopologyWatcher::announced() {
  last_announced_ns_ = clock_.boot_ns();
  if (!first_announced_ns_) first_announced_ns_ = last_announced_ns_;
}

int64_t TopologyWatcher::next_check_ns() const {
  const bool soon = !socket_ || !read_all_;
  const int64_t poll_ns = looked_ns_ + (soon ? options_.poll_deaf_ns : options_.poll_ns);
  if (!last_announced_ns_) return poll_ns;
  return std::min({poll_ns, *last_announced_ns_ + options_.quiet_ns,
                   *first_announced_ns_ + options_.longest_quiet_ns});
}

std::optional<TopologyChange> TopologyWatcher::check() {
  if (clock_.boot_ns() < next_check_ns()) return std::nullopt;
  looked_ns_ = clock_.boot_ns();
  first_announced_ns_ = last_announced_ns_ = std::nullopt;
  auto seen = look();
  if (!seen) return std::nullopt;
  seen->gpus = known_.gpus;
  seen->gpus_unavailable = known_.gpus_unavailable;
  auto what = topology_changes(known_, *seen);
  if (what.empty()) return std::nullopt;
  known_ = *seen;
  return TopologyChange{std::move(*seen), std::move(what)};
}

// A look that reads less than the one before would take what it missed for gone.
std::optional<Topology> TopologyWatcher::look() {
  // Not NVML: asking it wakes GPUs that sleep.
  auto seen = discover_topology(options_.sysroot, {.nvml_library = ""});
  const auto unread = seen ? newly_unread(known_, *seen) : seen.error().message;
  if (read_all_ && !unread.empty())
    spdlog::warn("topology: cannot be read just now, is looked at again: {}", unread);
  read_all_ = unread.empty();
  if (!read_all_) return std::nullopt;
  return std::move(*seen);
}

}  // namespace tierpilot
