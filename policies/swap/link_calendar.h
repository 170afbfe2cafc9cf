// When the link is busy, by copies that a plan wants: one at a time each way, on the clock of a
// step in which nothing ever leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "policies/swap/link.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

// One way of the link.
class Lane {
 public:
  // The earliest begin, not before `from_ns`, of so much free time; the latest one that ends by
  // `until_ns`, which may be before 0.
  int64_t earliest(int64_t from_ns, int64_t duration_ns) const;
  int64_t latest(int64_t until_ns, int64_t duration_ns) const;
  void take(int64_t begin_ns, int64_t duration_ns);
  // What was taken with that begin.
  void release(int64_t begin_ns) { busy_.erase(begin_ns); }

 private:
  std::map<int64_t, int64_t> busy_;  // begin and end, apart
};

// Out as early as the link is free, back as late as it is in time.
struct RoundTrip {
  int64_t out_ns, back_ns;      // begins of the copies
  Position away_from, back_at;  // its bytes count up to the first and again from the second
};

class LinkCalendar {
 public:
  LinkCalendar(const Timetable& timetable, const Link& link) : timetable_(timetable), link_(link) {}

  // Of what operator `from` used last and operator `to` needs; nothing where it would not be away
  // at any position.
  std::optional<RoundTrip> find(Position from, Position to, int64_t bytes) const;
  void take(const RoundTrip& trip, int64_t bytes);
  void release(const RoundTrip& trip, int64_t bytes);

 private:
  Position position_at(int64_t ns) const;

  const Timetable& timetable_;
  Link link_;
  Lane out_, back_;
};

}  // namespace tierpilot::swap
