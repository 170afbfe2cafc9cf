#include "daemon/agent/data/read_turns.h"

#include <fmt/format.h>

#include <utility>

namespace tierpilot::agent {

Result<ReadTurns::Id> ReadTurns::ask(Wish wish, Tell tell) {
  const Id id = next_++;
  if (reading_.size() < readers_)
    begin(id, std::move(wish), tell);
  else if (!wish.wait)
    tell({});
  else if (line_.size() < kMaxLine)
    line_.push_back({id, std::move(wish), std::move(tell)});
  else
    return fail(ErrorCode::kExhausted, fmt::format("{} wait already", kMaxLine));
  return id;
}

void ReadTurns::done(Id id) {
  const auto turn = reading_.find(id);
  if (turn == reading_.end()) return;
  const Wish done = turn->second;
  leave(id);
  send_to(done);
}

void ReadTurns::leave(Id id) {
  if (reading_.erase(id) == 0) {
    line_.remove_if([id](const Waiting& waiting) { return waiting.id == id; });
    return;
  }
  if (line_.empty()) return;
  Waiting first = std::move(line_.front());
  line_.pop_front();
  begin(first.id, std::move(first.wish), first.tell);
}

void ReadTurns::begin(Id id, Wish wish, const Tell& tell) {
  reading_.emplace(id, std::move(wish));
  ++turns_;
  tell({.turn = true, .elsewhere = {}});
}

void ReadTurns::send_to(const Wish& done) {
  if (!done.reachable) return;
  bool stays = true;
  for (auto it = line_.begin(); it != line_.end();) {
    const auto here = it++;
    if (here->wish.dataset != done.dataset) continue;
    stays = !stays;
    // Nobody is sent to himself.
    if (stays || here->wish.reader == done.reader) continue;
    const Tell tell = std::move(here->tell);
    line_.erase(here);
    tell({.turn = false, .elsewhere = done.reader});
    ++sent_elsewhere_;
  }
}

ReadTurns::Totals ReadTurns::totals() const {
  return {reading_.size(), line_.size(), turns_, sent_elsewhere_};
}

}  // namespace tierpilot::agent
