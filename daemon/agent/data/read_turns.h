// Whose turn it is to read from this node. All who read at once would share its uplink and end
// late; a few at a time end early, and the others read from their copies. Bookkeeping only, owned
// by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>

#include "base/result.h"
#include "daemon/memory/pool/names.h"

namespace tierpilot::agent {

class ReadTurns {
 public:
  struct Wish {
    DatasetId dataset;
    std::string reader;  // where the one who asks serves data itself
    bool reachable;      // others may be sent to `reader`
    bool wait;           // stand in line if no turn is free
  };
  struct Answer {
    bool turn = false;
    std::string elsewhere;  // the reader to ask instead; with neither: no turn is free
  };
  using Tell = std::function<void(const Answer&)>;  // must not call back
  using Id = uint64_t;
  struct Totals {
    size_t reading = 0, waiting = 0;  // now
    uint64_t turns = 0, sent_elsewhere = 0;
  };

  static constexpr size_t kMaxLine = 1024;

  // `readers`: turns that are out at a time, at least 1.
  explicit ReadTurns(size_t readers) : readers_(readers) {}

  // The answer is told once: at once, or when it is the asker's turn in the order of asking, or
  // when somebody is done. Whoever has asked must leave, in line or with a turn. kExhausted: the
  // line is too long.
  Result<Id> ask(Wish wish, Tell tell);
  // Ends a turn by which all was read. The first of the line has the turn; of the others that wait
  // for the same version every second is sent to this reader, so that a copy halves the line.
  void done(Id id);
  // Ends a turn, or a wait without an answer. Ids that have left already are fine.
  void leave(Id id);

  Totals totals() const;

 private:
  struct Waiting {
    Id id;
    Wish wish;
    Tell tell;
  };

  void begin(Id id, Wish wish, const Tell& tell);
  void send_to(const Wish& done);

  const size_t readers_;
  std::map<Id, Wish> reading_;
  std::list<Waiting> line_;  // empty while a turn is free
  Id next_ = 0;
  uint64_t turns_ = 0, sent_elsewhere_ = 0;
};

}  // namespace tierpilot::agent
