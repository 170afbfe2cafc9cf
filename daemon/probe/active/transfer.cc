#include "daemon/probe/active/transfer.h"

#include <fmt/format.h>
#include <numaif.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "daemon/probe/active/memory.h"
#include "daemon/probe/active/scratch_file.h"

namespace tierpilot {
namespace {

using Clock = std::chrono::steady_clock;

double per_second(size_t bytes, Clock::time_point start) {
  return static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - start).count();
}

class NodeTransfer final : public Transfer {
 public:
  NodeTransfer(std::unique_ptr<TierMemory> memory, int fast, int slow)
      : memory_(std::move(memory)), fast_(fast), slow_(slow) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t at = 0; at < memory_->size(); at += page) pages_.push_back(memory_->data() + at);
  }
  std::string method() const override {
    return fmt::format("move_pages of {} in base pages", format_bytes(memory_->size()));
  }
  Result<double> evict() override { return move_to(slow_); }
  Result<double> promote() override { return move_to(fast_); }

 private:
  Result<double> move_to(int node) {
    const std::vector<int> nodes(pages_.size(), node);
    std::vector<int> status(pages_.size(), -1);
    const auto start = Clock::now();
    if (move_pages(0, pages_.size(), pages_.data(), nodes.data(), status.data(), MPOL_MF_MOVE) < 0)
      return fail_errno(errno, fmt::format("move_pages to node {}", node));
    const double rate = per_second(memory_->size(), start);
    const auto moved = static_cast<size_t>(std::count(status.begin(), status.end(), node));
    if (moved * 16 >= status.size() * 15)
      return rate * static_cast<double>(moved) / static_cast<double>(status.size());
    const int why =
        *std::find_if(status.begin(), status.end(), [node](int s) { return s != node; });
    return fail(ErrorCode::kUnavailable,
                fmt::format("node {} took {} of {} pages: {}", node, moved, status.size(),
                            why < 0 ? strerror(-why) : "the others stayed where they were"));
  }

  std::unique_ptr<TierMemory> memory_;
  int fast_, slow_;
  std::vector<void*> pages_;
};

class FileTransfer final : public Transfer {
 public:
  FileTransfer(std::unique_ptr<TierMemory> memory, std::optional<ScratchFile> fast,
               std::optional<ScratchFile> slow)
      : memory_(std::move(memory)), fast_(std::move(fast)), slow_(std::move(slow)) {}
  std::string method() const override {
    return fmt::format("{} written to a file, synced and dropped, then read cold",
                       format_bytes(memory_->size()));
  }
  Result<double> evict() override { return carry(fast_, slow_); }
  Result<double> promote() override { return carry(slow_, fast_); }

 private:
  Result<double> carry(std::optional<ScratchFile>& from, std::optional<ScratchFile>& to) {
    const auto start = Clock::now();
    if (from)
      if (auto status = from->read_cold(*memory_); !status) return tl::unexpected(status.error());
    if (to)
      if (auto status = to->write_through(*memory_); !status) return tl::unexpected(status.error());
    return per_second(memory_->size(), start);
  }

  std::unique_ptr<TierMemory> memory_;  // on the node among the two, or on any
  std::optional<ScratchFile> fast_, slow_;
};

// Writes it once, so that there is something to read and cold is known to be cold.
Result<std::optional<ScratchFile>> file_for(const TierSpec& tier, const TierMemory& memory) {
  if (!tier.is_directory()) return std::nullopt;
  auto file = ScratchFile::create(tier.directory);
  if (!file) return tl::unexpected(file.error());
  if (auto status = file->write_through(memory); !status) return tl::unexpected(status.error());
  if (auto status = file->check_cold(memory.size()); !status) return tl::unexpected(status.error());
  return std::move(*file);
}

}  // namespace

Result<std::unique_ptr<Transfer>> make_transfer(const TierSpec& fast, const TierSpec& slow,
                                                size_t bytes) {
  // Two directories: the bytes pass through node 0, where a machine with any memory has some.
  const int node = std::max({fast.numa_node, fast.is_directory() ? slow.numa_node : -1, 0});
  auto memory = allocate_on_node(node, bytes, PageSize::kBase);
  if (!memory) return tl::unexpected(memory.error());
  if (!fast.is_directory() && !slow.is_directory())
    return std::make_unique<NodeTransfer>(std::move(*memory), fast.numa_node, slow.numa_node);
  auto fast_file = file_for(fast, **memory);
  if (!fast_file) return tl::unexpected(fast_file.error());
  auto slow_file = file_for(slow, **memory);
  if (!slow_file) return tl::unexpected(slow_file.error());
  return std::make_unique<FileTransfer>(std::move(*memory), std::move(*fast_file),
                                        std::move(*slow_file));
}

}  // namespace tierpilot
