#include "daemon/probe/memory/transfer.h"

#include <fmt/format.h>
#include <numaif.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "daemon/probe/memory/scratch_file.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kFileChunk = 1 << 20;
constexpr size_t kSmallPart = 8;  // of the bytes: a small transfer
constexpr double kAllHuge = 0.99;
const size_t kBasePage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
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
    auto start = SteadyClock::now();
    for (size_t at = 0, count = 1; at < pages_.size(); at += count) {
      if (at == 1) start = SteadyClock::now();
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

// As the dataset pool moves a dataset (daemon/memory/pool): into a file of its own, read and
// written through a buffer that stays in the cache.
class FileTransfer final : public Transfer {
 public:
  FileTransfer(ScratchFile fast, ScratchFile slow, const TransferOptions& options)
      : fast_(std::move(fast)),
        slow_(std::move(slow)),
        bytes_(options.bytes),
        chunk_(options.batch_bytes ? options.batch_bytes : kFileChunk),
        buffer_(std::make_unique<std::byte[]>(chunk_)) {
    // Zeros would tell the speed of a compressing file system, not of what lies below it.
    SeededRandom random(1);
    for (size_t i = 0; i < chunk_; ++i) buffer_[i] = static_cast<std::byte>(random.bits());
  }
  std::string method() const override {
    return fmt::format("{} from file to file by {} a call, synced and dropped, then read cold",
                       format_bytes(bytes_), format_bytes(chunk_));
  }
  // So that there is something to read, and cold is known to be cold.
  Status prepare() {
    for (ScratchFile* file : {&fast_, &slow_}) {
      auto status = Status{};
      for (size_t at = 0; status && at < bytes_; at += chunk_)
        status = file->write({buffer_.get(), std::min(chunk_, bytes_ - at)}, at);
      status = status.and_then([&] { return file->sync(); })
                   .and_then([&] { return file->drop(); })
                   .and_then([&] { return file->check_cold(bytes_); });
      if (!status) return status;
    }
    return {};
  }
  Result<Moved> evict() override { return carry(fast_, slow_); }
  Result<Moved> promote() override { return carry(slow_, fast_); }

 private:
  Status copy(ScratchFile& from, ScratchFile& to, size_t bytes) {
    Status status;
    for (size_t at = 0; status && at < bytes; at += chunk_) {
      const std::span part(buffer_.get(), std::min(chunk_, bytes - at));
      status = from.read(part, at).and_then([&] { return to.write(part, at); });
    }
    return status;
  }

  // All that the pool does for one dataset, in seconds.
  Result<double> carry(ScratchFile& from, ScratchFile& to, size_t bytes) {
    if (auto status = to.empty(); !status) return tl::unexpected(status.error());
    const auto start = SteadyClock::now();
    const auto status = to.allocate(bytes)
                            .and_then([&] { return copy(from, to, bytes); })
                            .and_then([&] { return to.sync(); })
                            .and_then([&] { return to.sync_name(); })
                            .and_then([&] { return to.drop(); })
                            .and_then([&] { return from.drop(); });
    if (!status) return tl::unexpected(status.error());
    return seconds_since(start);
  }

  Result<Moved> carry(ScratchFile& from, ScratchFile& to) {
    // A transfer that failed has left one of them short.
    if (broken_)
      if (auto status = prepare(); !status) return tl::unexpected(status.error());
    broken_ = true;
    auto moved = carry_sizes(from, to);
    broken_ = !moved;
    return moved;
  }

  Result<Moved> carry_sizes(ScratchFile& from, ScratchFile& to) {
    const size_t small = std::max(bytes_ / kSmallPart, kBasePage);
    const auto first_s = carry(from, to, kBasePage);
    if (!first_s) return tl::unexpected(first_s.error());
    const auto small_s = carry(from, to, small);
    if (!small_s) return tl::unexpected(small_s.error());
    const auto whole_s = carry(from, to, bytes_);
    if (!whole_s) return tl::unexpected(whole_s.error());
    // A disturbed small one would leave the bytes no time: no more than half may be the start.
    const double byte_s = std::max(*whole_s - *small_s, *whole_s / 2) /
                          static_cast<double>(bytes_ - std::min(small, bytes_ / 2));
    const double start_s = std::max(*whole_s - byte_s * static_cast<double>(bytes_), 0.0);
    return Moved{
        .first_page_ns = *first_s * 1e9, .bytes_per_s = 1 / byte_s, .start_ns = start_s * 1e9};
  }

  ScratchFile fast_, slow_;
  const size_t bytes_, chunk_;
  const std::unique_ptr<std::byte[]> buffer_;
  bool broken_ = false;
};

Result<ScratchFile> file_on(const TierSpec& tier, size_t bytes) {
  return tier.is_directory() ? ScratchFile::create(tier.directory)
                             : ScratchFile::create_on_node(tier.numa_node, bytes);
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
  auto fast_file = file_on(fast, options.bytes);
  if (!fast_file) return tl::unexpected(fast_file.error());
  auto slow_file = file_on(slow, options.bytes);
  if (!slow_file) return tl::unexpected(slow_file.error());
  auto transfer =
      std::make_unique<FileTransfer>(std::move(*fast_file), std::move(*slow_file), options);
  if (auto status = transfer->prepare(); !status) return tl::unexpected(status.error());
  return transfer;
}

}  // namespace tierpilot
