#include "daemon/memory/pool/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "base/clock.h"
#include "daemon/memory/pool/source_choice.h"

namespace tierpilot {
namespace {

class Fetch {
 public:
  Fetch(RemoteSource& remote, const DatasetId& id, uint64_t bytes, int to, const CancelFlag& cancel)
      : remote_(remote), id_(id), bytes_(bytes), to_(to), cancel_(cancel) {}

  Status from(const std::string& address) {
    const bool mixed = offset_ > 0;
    if (auto status = read_rest(address); !status) return status;
    if (hasher_.digest() == id_.digest) return {};
    begin_anew();
    // Whose bytes are wrong? Of this source alone it is seen.
    if (mixed) return from(address);
    remote_.doubt(address, id_);
    return fail(ErrorCode::kIo, "its copy has other bytes than its checksum says");
  }

  // The last one.
  int64_t read_ms() const { return read_ns_ / 1'000'000; }
  // Not the source's fault, so no other source can help.
  bool local_failure() const { return local_failure_; }

 private:
  Status read_rest(const std::string& address) {
    while (offset_ < bytes_) {
      if (cancel_) return cancelled(describe(id_));
      const auto got = read(address, buffer_.first(bytes_ - offset_));
      if (!got) return tl::unexpected(got.error());
      if (*got == 0) return disbelieve(fmt::format("its copy has only {} of", offset_));
      if (auto status = write_at(to_, buffer_.first(*got), offset_, describe(id_)); !status) {
        local_failure_ = true;
        return status;
      }
      hasher_.add(buffer_.first(bytes_ - offset_).first(*got));
      offset_ += *got;
    }
    const auto beyond = read(address, buffer_.first(1));
    if (!beyond) return tl::unexpected(beyond.error());
    if (*beyond > 0) return disbelieve("its copy has more than");
    return {};
  }

  Result<size_t> read(const std::string& address, std::span<std::byte> into) {
    const int64_t begin_ns = system_clock().boot_ns();
    auto got = remote_.read(address, id_, offset_, into);
    read_ns_ = system_clock().boot_ns() - begin_ns;
    if (got && *got > into.size())
      return fail(ErrorCode::kIo, fmt::format("gave {} bytes for {}", *got, into.size()));
    return got;
  }

  void begin_anew() {
    offset_ = 0;
    hasher_.reset();
  }

  Status disbelieve(std::string_view why) {
    begin_anew();
    return fail(ErrorCode::kIo, fmt::format("{} {} bytes", why, bytes_));
  }

  RemoteSource& remote_;
  const DatasetId& id_;
  uint64_t bytes_;
  int to_;
  const CancelFlag& cancel_;
  CopyBuffer buffer_;
  ContentHasher hasher_;  // of what is there up to the offset
  uint64_t offset_ = 0;
  int64_t read_ns_ = 0;
  bool local_failure_ = false;
};

// Between tries at sources that have too many readers: longer each time, with chance, so that a
// crowd does not come back as one.
class Pause {
 public:
  // After a read that was refused, for which it waited so long. False: it has been patient for long
  // enough, or is cancelled.
  bool take(int64_t refused_ms, const CancelFlag& cancel) {
    taken_ms_ += refused_ms;
    if (taken_ms_ >= kBusyPatienceMs) return false;
    const int64_t wait_ms = std::uniform_int_distribution<int64_t>(next_ms_ / 2, next_ms_)(random_);
    for (int64_t left_ms = wait_ms; left_ms > 0 && !cancel; left_ms -= kLookMs)
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(left_ms, kLookMs)));
    taken_ms_ += wait_ms;
    next_ms_ = std::min(2 * next_ms_, kLongestMs);
    return !cancel;
  }

 private:
  static constexpr int64_t kLookMs = 50, kLongestMs = 2'000;

  std::minstd_rand random_{std::random_device{}()};
  int64_t next_ms_ = 20;
  int64_t taken_ms_ = 0;
};

}  // namespace

Result<TurnAnswer> RemoteSource::turn(const std::string&, const DatasetId&, bool, int64_t,
                                      const CancelFlag&) {
  return TurnAnswer{std::make_unique<ReadTurn>(), {}};
}

void RemoteSource::doubt(const std::string&, const DatasetId&) {}

Result<std::unique_ptr<ReadTurn>> fetch(RemoteSource& remote,
                                        const std::vector<std::string>& sources,
                                        const DatasetId& id, uint64_t bytes, int to,
                                        const CancelFlag& cancel, int64_t patience_ms) {
  if (sources.empty())
    return fail(ErrorCode::kNotFound,
                describe(id) + ": no replica on this node and no other node is known to hold it");
  Fetch fetch(remote, id, bytes, to, cancel);
  SourceChoice choice(remote, sources, id, cancel, patience_ms);
  Pause pause;
  std::string failures;
  ErrorCode code = ErrorCode::kIo;
  while (auto chosen = choice.next()) {
    const auto status = fetch.from(chosen->address);
    if (status) return std::move(chosen->turn);
    if (fetch.local_failure()) return tl::unexpected(status.error());
    if (cancel) return cancelled(describe(id));
    // Busy is not broken: it goes on where it stopped, from whoever has room first.
    if (status.error().code == ErrorCode::kExhausted && pause.take(fetch.read_ms(), cancel)) {
      choice.busy(chosen->address);
      continue;
    }
    choice.failed(chosen->address);
    code = status.error().code;
    failures += fmt::format("{}from '{}': {}", failures.empty() ? "" : "; ", chosen->address,
                            status.error().message);
  }
  return fail(code, fmt::format("{}: cannot be fetched: {}", describe(id), failures));
}

}  // namespace tierpilot
