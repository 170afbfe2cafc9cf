// How much of what is read for other nodes may be in memory until they take it. Who takes nothing
// fills no more than his own part. Reads wait for room and are not refused at once: a fetch asks
// for more than its link carries, and each refusal would cost it a pause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "rpc/event_loop.h"
#include "rpc/stream/unsent.h"

namespace tierpilot::agent {

// On the loop's thread.
class AnswerRoom : public std::enable_shared_from_this<AnswerRoom> {
 public:
  struct Limits {
    // Answers that are made or unsent; one more begins while there is less. Enough for the chunks
    // that a fetch asks for ahead.
    size_t connection_bytes = size_t{4} << 20;
    size_t all_bytes = size_t{128} << 20;
    size_t reads = 64;  // that are made at once
    // Then the reader shall ask again, or somebody else, before he takes this source for dead.
    int64_t patience_ms = 10'000;
  };
  class Reader;  // a connection
  class Share;   // of an answer: from when it is made until it is among the unsent bytes

  // `all` counts the unsent bytes of all readers.
  AnswerRoom(EventLoop& loop, std::shared_ptr<Unsent> all, const Limits& limits);
  ~AnswerRoom();

  static std::shared_ptr<Reader> add(std::shared_ptr<const Unsent> unsent);
  // Connections that wait have room in turns, and each its reads in order. Rejects with kExhausted
  // when there was none for too long. Dropped, it leaves the line.
  kj::Promise<std::shared_ptr<Share>> enter(std::shared_ptr<Reader> reader, size_t bytes);

 private:
  class Place;  // in a line

  bool has_room() const;
  bool has_room(const Reader& reader) const;
  void advance();
  void leave_later(const std::shared_ptr<Reader>& reader, size_t bytes);
  void leave(Reader& reader, size_t bytes);

  EventLoop& loop_;
  const std::shared_ptr<Unsent> all_;
  const Limits limits_;
  size_t reads_ = 0, bytes_ = 0;  // that are made
  std::list<Reader*> waiting_;    // have a line; whose turn it is first
};

}  // namespace tierpilot::agent
