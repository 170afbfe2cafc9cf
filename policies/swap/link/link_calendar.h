// When the link is busy, by copies that a plan wants: one at a time each way, on the clock of a
// step in which nothing ever leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policies/swap/link/link.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

struct Span {
  int64_t begin_ns, end_ns;
};

// One way of the link. A copy goes on where others leave it time: who comes first goes first on a
// real one, but what is small would leave no long free times here.
class LinkWay {
 public:
  // The first free time from `from_ns` on that adds up to `duration_ns`.
  std::vector<Span> earliest(int64_t from_ns, int64_t duration_ns) const;
  // The last one until `until_ns`; it may begin before 0.
  std::vector<Span> latest(int64_t until_ns, int64_t duration_ns) const;
  void take(const std::vector<Span>& spans);
  // Of what was taken.
  void release(const std::vector<Span>& spans);

 private:
  std::map<int64_t, int64_t> busy_;  // begin and end, with free time between any two
};

// Out as early as the link is free, back as late as it is in time.
struct RoundTrip {
  std::vector<Span> out{}, back{};
  Position away_from = 0, back_at = 0;  // its bytes count before the first and from the second on
};

class LinkCalendar {
 public:
  LinkCalendar(const Timetable& timetable, const Link& link) : timetable_(timetable), link_(link) {}

  // Of what operator `from` used last and operator `to` needs; nothing where it would not be away
  // at any position.
  std::optional<RoundTrip> find(Position from, Position to, int64_t bytes) const;
  void take(const RoundTrip& trip);
  void release(const RoundTrip& trip);

 private:
  Position position_at(int64_t ns, Position low, Position high) const;

  const Timetable& timetable_;
  Link link_;
  LinkWay out_, back_;
};

}  // namespace tierpilot::swap
