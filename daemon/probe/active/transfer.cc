#include "daemon/probe/active/transfer.h"

#include <fmt/format.h>
#include <numaif.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "daemon/probe/active/scratch_file.h"

namespace tierpilot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFileChunk = 1 << 20;
constexpr size_t kHugePage = 2 << 20;
constexpr double kAllHuge = 0.99;
const size_t kBasePage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class NodeTransfer final : public Transfer {
 public:
  NodeTransfer(HugeMemory memory, bool huge, size_t batch_bytes, int fast, int slow)
      : memory_(std::move(memory)),
        huge_(huge),
        page_bytes_(huge ? kHugePage : kBasePage),
        fast_(fast),
        slow_(slow) {
    for (size_t at = 0; at < memory_.memory->size(); at += page_bytes_)
      pages_.push_back(memory_.memory->data() + at);
    batch_ = batch_bytes ? std::max<size_t>(batch_bytes / page_bytes_, 1) : pages_.size();
  }
  std::string method() const override {
    return fmt::format("move_pages of {} in {}, {} a call", format_bytes(memory_.memory->size()),
                       memory_.how, std::min(batch_, pages_.size()));
  }
  // One address stands for 2 MiB, which is false where the kernel gave base pages or split them.
  Status check_huge() const {
    if (!huge_) return {};
    const auto share = memory_.huge_share();
    if (!share) return tl::unexpected(share.error());
    if (*share < kAllHuge)
      return fail(
          ErrorCode::kUnavailable,
          fmt::format("{:.0f} % of the memory is in huge pages: {}", *share * 100, memory_.how));
    return {};
  }
  Result<Moved> evict() override { return move_to(slow_); }
  Result<Moved> promote() override { return move_to(fast_); }

 private:
  // How many of the pages [begin, begin + count) arrived.
  Result<size_t> move(size_t begin, size_t count, int node) {
    const std::vector<int> nodes(count, node);
    std::vector<int> status(count, -1);
    if (move_pages(0, count, pages_.data() + begin, nodes.data(), status.data(), MPOL_MF_MOVE) < 0)
      return fail_errno(errno, fmt::format("move_pages to node {}", node));
    const auto arrived = static_cast<size_t>(std::count(status.begin(), status.end(), node));
    if (arrived < count)
      why_ = *std::find_if(status.begin(), status.end(), [node](int s) { return s != node; });
    return arrived;
  }

  Result<Moved> move_to(int node) {
    Moved moved;
    size_t arrived = 0;
    auto start = Clock::now();
    for (size_t at = 0, count = 1; at < pages_.size(); at += count) {
      if (at == 1) start = Clock::now();
      count = at == 0 ? 1 : std::min(batch_, pages_.size() - at);
      const auto now = move(at, count, node);
      if (!now) return tl::unexpected(now.error());
      if (at == 0) moved.first_page_ns = seconds_since(start) * 1e9;
      arrived += *now;
    }
    if (arrived * 16 < pages_.size() * 15)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("node {} took {} of {} pages: {}", node, arrived, pages_.size(),
                              why_ < 0 ? strerror(-why_) : "the others stayed where they were"));
    moved.bytes_per_s = static_cast<double>((std::max<size_t>(arrived, 2) - 1) * page_bytes_) /
                        seconds_since(start);
    if (auto status = check_huge(); !status) return tl::unexpected(status.error());
    return moved;
  }

  HugeMemory memory_;  // of any page size
  bool huge_;
  size_t page_bytes_, batch_ = 0;
  int fast_, slow_;
  int why_ = 0;  // of a page that did not arrive
  std::vector<void*> pages_;
};

class FileTransfer final : public Transfer {
 public:
  FileTransfer(std::unique_ptr<TierMemory> memory, std::optional<ScratchFile> fast,
               std::optional<ScratchFile> slow, size_t batch_bytes)
      : memory_(std::move(memory)),
        fast_(std::move(fast)),
        slow_(std::move(slow)),
        chunk_(batch_bytes ? batch_bytes : kFileChunk) {}
  std::string method() const override {
    return fmt::format("{} written to a file by {} a call, synced and dropped, then read cold",
                       format_bytes(memory_->size()), format_bytes(chunk_));
  }
  Result<Moved> evict() override { return carry(fast_, slow_); }
  Result<Moved> promote() override { return carry(slow_, fast_); }

 private:
  using File = std::optional<ScratchFile>;

  Status carry_range(File& from, File& to, size_t begin, size_t end) {
    return (from ? from->read(*memory_, begin, end, chunk_) : Status{})
        .and_then([&] { return to ? to->write(*memory_, begin, end, chunk_) : Status{}; })
        .and_then([&] { return to ? to->sync() : Status{}; });
  }

  Result<Moved> carry(File& from, File& to) {
    Moved moved;
    const auto whole = Clock::now();
    auto status =
        (to ? to->empty() : Status{}).and_then([&] { return carry_range(from, to, 0, kBasePage); });
    moved.first_page_ns = seconds_since(whole) * 1e9;
    const auto rest = Clock::now();
    status = status.and_then([&] { return carry_range(from, to, kBasePage, memory_->size()); })
                 .and_then([&] { return to ? to->drop() : Status{}; });
    moved.bytes_per_s = static_cast<double>(memory_->size() - kBasePage) / seconds_since(rest);
    if (status && from) status = from->drop();
    if (!status) return tl::unexpected(status.error());
    return moved;
  }

  std::unique_ptr<TierMemory> memory_;  // on the node among the two, or on any
  File fast_, slow_;
  size_t chunk_;
};

// Writes it once, so that there is something to read and cold is known to be cold.
Result<std::optional<ScratchFile>> file_for(const TierSpec& tier, const TierMemory& memory) {
  if (!tier.is_directory()) return std::nullopt;
  auto file = ScratchFile::create(tier.directory);
  if (!file) return tl::unexpected(file.error());
  const auto status = file->write(memory, 0, memory.size(), kFileChunk)
                          .and_then([&] { return file->sync(); })
                          .and_then([&] { return file->drop(); })
                          .and_then([&] { return file->check_cold(memory.size()); });
  if (!status) return tl::unexpected(status.error());
  return std::move(*file);
}

Result<std::unique_ptr<Transfer>> make_node_transfer(int fast, int slow,
                                                     const TransferOptions& options) {
  const bool huge = options.pages != PageSize::kBase;
  auto memory = huge ? allocate_huge_on_node(fast, options.bytes)
                     : allocate_on_node(fast, options.bytes, PageSize::kBase).map([](auto&& base) {
                         return HugeMemory{.memory = std::move(base), .how = "base pages"};
                       });
  if (!memory) return tl::unexpected(memory.error());
  auto transfer =
      std::make_unique<NodeTransfer>(std::move(*memory), huge, options.batch_bytes, fast, slow);
  if (auto status = transfer->check_huge(); !status) return tl::unexpected(status.error());
  return transfer;
}

}  // namespace

Result<std::unique_ptr<Transfer>> make_transfer(const TierSpec& fast, const TierSpec& slow,
                                                const TransferOptions& options) {
  if (!fast.is_directory() && !slow.is_directory())
    return make_node_transfer(fast.numa_node, slow.numa_node, options);
  // Two directories: the bytes pass through node 0, where a machine with any memory has some.
  const int node = std::max({fast.numa_node, fast.is_directory() ? slow.numa_node : -1, 0});
  auto memory = allocate_on_node(node, options.bytes, PageSize::kBase);
  if (!memory) return tl::unexpected(memory.error());
  auto fast_file = file_for(fast, **memory);
  if (!fast_file) return tl::unexpected(fast_file.error());
  auto slow_file = file_for(slow, **memory);
  if (!slow_file) return tl::unexpected(slow_file.error());
  return std::make_unique<FileTransfer>(std::move(*memory), std::move(*fast_file),
                                        std::move(*slow_file), options.batch_bytes);
}

}  // namespace tierpilot
