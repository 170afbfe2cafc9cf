// Which source a fetch reads from next. The first few are asked in order whether one has a turn
// free; else the fetch stands in line at the first, and then wherever it is sent from there. Turns
// make many fetches faster and decide nothing else: without one for too long, or where they are
// unknown or refused, it reads without.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/memory/pool/remote.h"

namespace tierpilot {

class SourceChoice {
 public:
  static constexpr size_t kAsked = 4;
  static constexpr int64_t kAnswerMs = 3'000;  // for an answer that waits for nothing
  // To where sources send it: each copy halves a line. Who invents addresses is not followed on.
  static constexpr size_t kMostHops = 12;

  struct Chosen {
    std::string address;
    std::unique_ptr<ReadTurn> turn;  // never null
  };

  SourceChoice(RemoteSource& remote, std::vector<std::string> sources, const DatasetId& id,
               const CancelFlag& cancel, int64_t patience_ms);

  // None: all sources have failed.
  std::optional<Chosen> next();
  // This source has no room now: others are chosen before it.
  void busy(const std::string& address);
  // This source, or where one has sent to, is not chosen again.
  void failed(const std::string& address);

 private:
  std::optional<Chosen> with_turn();
  std::optional<Chosen> ask_around();
  std::optional<Chosen> wait_in_line();
  // What errs is not asked for turns again.
  Result<TurnAnswer> ask(const std::string& address, bool wait);
  // The first that answers when asked for turns.
  std::optional<std::string> first() const;
  int64_t left_ms() const;

  RemoteSource& remote_;
  std::vector<std::string> sources_;  // that have not failed
  const DatasetId& id_;
  const CancelFlag& cancel_;
  int64_t patience_ns_;
  int64_t since_ns_ = 0;         // of the search under way
  size_t hops_ = 0;              // of all searches
  std::set<std::string> avoid_;  // failed or without an answer to the question for a turn
};

}  // namespace tierpilot
