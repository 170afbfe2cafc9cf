#include "daemon/memory/pool/source_choice.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace tierpilot {
namespace {

int64_t clock_ns() {
  return system_clock().boot_ns();
}

}  // namespace

SourceChoice::SourceChoice(RemoteSource& remote, std::vector<std::string> sources,
                           const DatasetId& id, const CancelFlag& cancel, int64_t patience_ms)
    : remote_(remote),
      sources_(std::move(sources)),
      id_(id),
      cancel_(cancel),
      patience_ns_(patience_ms * 1'000'000) {}

std::optional<SourceChoice::Chosen> SourceChoice::next() {
  if (sources_.empty()) return std::nullopt;
  since_ns_ = clock_ns();
  auto chosen = with_turn();
  patience_ns_ -= clock_ns() - since_ns_;
  if (chosen) return chosen;
  return Chosen{first().value_or(sources_.front()), std::make_unique<ReadTurn>()};
}

void SourceChoice::busy(const std::string& address) {
  const auto found = std::find(sources_.begin(), sources_.end(), address);
  if (found != sources_.end()) std::rotate(found, found + 1, sources_.end());
}

void SourceChoice::failed(const std::string& address) {
  std::erase(sources_, address);
  avoid_.insert(address);
}

std::optional<SourceChoice::Chosen> SourceChoice::with_turn() {
  auto chosen = ask_around();
  return chosen ? std::move(chosen) : wait_in_line();
}

std::optional<SourceChoice::Chosen> SourceChoice::ask_around() {
  size_t busy = 0;
  for (const auto& address : sources_) {
    if (busy == kAsked || left_ms() <= 0) break;
    if (avoid_.contains(address)) continue;
    auto answer = ask(address, false);
    if (!answer) continue;
    if (answer->turn) return Chosen{address, std::move(answer->turn)};
    ++busy;
  }
  return std::nullopt;
}

std::optional<SourceChoice::Chosen> SourceChoice::wait_in_line() {
  std::set<std::string> been;
  for (auto at = first(); at && left_ms() > 0;) {
    auto answer = ask(*at, true);
    if (answer && answer->turn) return Chosen{*at, std::move(answer->turn)};
    been.insert(*at);
    if (answer && !avoid_.contains(answer->elsewhere) && !been.contains(answer->elsewhere) &&
        !answer->elsewhere.empty() && hops_ < kMostHops) {
      ++hops_;
      at = answer->elsewhere;
      continue;
    }
    // To be sent in vain again and again would keep both ends busy for nothing.
    if (answer) avoid_.insert(*at);
    at = first();
  }
  return std::nullopt;
}

Result<TurnAnswer> SourceChoice::ask(const std::string& address, bool wait) {
  const int64_t limit_ms = wait ? left_ms() : std::min(left_ms(), kAnswerMs);
  auto answer = remote_.turn(address, id_, wait, limit_ms, cancel_);
  // A source is not to blame for a line that was longer than the patience.
  if (!answer && (!wait || left_ms() > 0)) avoid_.insert(address);
  return answer;
}

std::optional<std::string> SourceChoice::first() const {
  const auto found = std::find_if(sources_.begin(), sources_.end(),
                                  [&](const auto& address) { return !avoid_.contains(address); });
  return found == sources_.end() ? std::nullopt : std::optional(*found);
}

int64_t SourceChoice::left_ms() const {
  return cancel_ ? 0 : (patience_ns_ - (clock_ns() - since_ns_)) / 1'000'000;
}

}  // namespace tierpilot
