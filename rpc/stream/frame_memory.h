// A server's memory for large frames that have begun, of all its connections. A frame claims all of
// its size before it is read, and waits while there is too little left: the peer is then not read
// from, which costs an honest one some time and nothing else. One peer gets half of it at most, by
// all of its connections. Whoever holds memory for which others wait has to come on.
#pragma once

#include <kj/async.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "base/clock.h"
#include "rpc/event_loop.h"

namespace tierpilot {

class FrameMemory {
 public:
  struct OfPeer {
    size_t bytes = 0, waiting_frames = 0;
  };

  class Claim {
   public:
    class Owner {
     public:
      virtual void granted() = 0;
      // Nothing came for long, and others wait. It may end the claim.
      virtual void stalled() = 0;

     protected:
      ~Owner() = default;
    };

    // Tells `owner` once when it is granted, maybe before this returns.
    Claim(FrameMemory& memory, std::shared_ptr<OfPeer> peer, size_t bytes, Owner& owner);
    ~Claim();
    Claim(const Claim&) = delete;

    void came_on();

   private:
    friend class FrameMemory;
    FrameMemory& memory_;
    const std::shared_ptr<OfPeer> peer_;
    const size_t bytes_;
    Owner& owner_;
    int64_t came_on_ns_;
    bool is_granted_ = false;
    std::list<Claim*>::iterator place_;  // among those that wait, or those that are granted
  };

  FrameMemory(EventLoop& loop, size_t limit_bytes, int64_t stall_ms,
              const Clock& clock = system_clock())
      : loop_(loop), limit_bytes_(limit_bytes), stall_ms_(stall_ms), clock_(clock) {}

  size_t bytes() const { return bytes_; }
  size_t waiting_frames() const { return waiting_.size(); }

 private:
  bool has_share_for(const Claim& claim) const;
  Claim* next_to_grant() const;
  void grant(Claim& claim);
  void grant_waiting();
  void end_stalled();
  kj::Promise<void> watch();

  EventLoop& loop_;
  const size_t limit_bytes_;
  const int64_t stall_ms_;
  const Clock& clock_;
  size_t bytes_ = 0;
  std::list<Claim*> waiting_, granted_;
  bool grants_ = false, watches_ = false;
  kj::Promise<void> watch_ = nullptr;
};

}  // namespace tierpilot
