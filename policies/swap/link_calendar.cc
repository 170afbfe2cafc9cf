#include "policies/swap/link_calendar.h"

#include <algorithm>
#include <iterator>

namespace tierpilot::swap {

int64_t Lane::earliest(int64_t from_ns, int64_t duration_ns) const {
  auto next = busy_.upper_bound(from_ns);
  int64_t begin_ns = from_ns;
  if (next != busy_.begin()) begin_ns = std::max(begin_ns, std::prev(next)->second);
  for (; next != busy_.end() && next->first < begin_ns + duration_ns; ++next)
    begin_ns = next->second;
  return begin_ns;
}

int64_t Lane::latest(int64_t until_ns, int64_t duration_ns) const {
  auto after = busy_.lower_bound(until_ns);
  int64_t end_ns = until_ns;
  while (after != busy_.begin()) {
    const auto& [begin_ns, busy_until_ns] = *std::prev(after);
    if (busy_until_ns <= end_ns - duration_ns) break;
    end_ns = std::min(end_ns, begin_ns);
    --after;
  }
  return end_ns - duration_ns;
}

void Lane::take(int64_t begin_ns, int64_t duration_ns) {
  if (duration_ns > 0) busy_.emplace(begin_ns, begin_ns + duration_ns);
}

// The operator that runs then; the end of the step is a position too.
Position LinkCalendar::position_at(int64_t ns) const {
  Position low = 0, high = timetable_.end();
  while (low < high) {
    const Position middle = low + (high - low + 1) / 2;
    if (timetable_.start_ns(middle) <= ns)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

std::optional<RoundTrip> LinkCalendar::find(Position from, Position to, int64_t bytes) const {
  const auto copy_ns = link_.copy_ns(bytes);
  RoundTrip trip{};
  trip.out_ns = out_.earliest(timetable_.start_ns(from + 1), copy_ns);
  trip.back_ns = back_.latest(timetable_.start_ns(to) - link_.latency_ns, copy_ns);
  const auto out_end_ns = trip.out_ns + copy_ns + link_.latency_ns;
  if (out_end_ns > trip.back_ns) return std::nullopt;
  trip.away_from = position_at(out_end_ns) + 1;
  trip.back_at = position_at(trip.back_ns);
  return trip.away_from < trip.back_at ? std::optional(trip) : std::nullopt;
}

void LinkCalendar::take(const RoundTrip& trip, int64_t bytes) {
  out_.take(trip.out_ns, link_.copy_ns(bytes));
  back_.take(trip.back_ns, link_.copy_ns(bytes));
}

void LinkCalendar::release(const RoundTrip& trip, int64_t bytes) {
  if (link_.copy_ns(bytes) == 0) return;  // took nothing
  out_.release(trip.out_ns);
  back_.release(trip.back_ns);
}

}  // namespace tierpilot::swap
