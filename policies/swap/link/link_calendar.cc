#include "policies/swap/link/link_calendar.h"

#include <algorithm>
#include <iterator>

namespace tierpilot::swap {

std::vector<Span> LinkWay::earliest(int64_t from_ns, int64_t duration_ns) const {
  std::vector<Span> spans;
  auto next = busy_.upper_bound(from_ns);
  if (next != busy_.begin()) from_ns = std::max(from_ns, std::prev(next)->second);
  while (duration_ns > 0) {
    const int64_t free_ns = next == busy_.end() ? duration_ns : next->first - from_ns;
    const int64_t part_ns = std::min(free_ns, duration_ns);
    if (part_ns > 0) spans.push_back({from_ns, from_ns + part_ns});
    duration_ns -= part_ns;
    if (duration_ns > 0) from_ns = next++->second;
  }
  return spans;
}

std::vector<Span> LinkWay::latest(int64_t until_ns, int64_t duration_ns) const {
  std::vector<Span> spans;
  auto after = busy_.lower_bound(until_ns);
  while (duration_ns > 0) {
    const auto* const before = after == busy_.begin() ? nullptr : &*std::prev(after);
    const int64_t free_ns = before ? until_ns - before->second : duration_ns;
    const int64_t part_ns = std::min(free_ns, duration_ns);
    if (part_ns > 0) {
      spans.insert(spans.begin(), {until_ns - part_ns, until_ns});
      duration_ns -= part_ns;
    }
    if (duration_ns > 0) {
      until_ns = before->first;
      --after;
    }
  }
  return spans;
}

void LinkWay::take(const std::vector<Span>& spans) {
  for (auto [begin_ns, end_ns] : spans) {
    auto next = busy_.lower_bound(begin_ns);
    if (next != busy_.end() && next->first == end_ns) {
      end_ns = next->second;
      next = busy_.erase(next);
    }
    if (next != busy_.begin() && std::prev(next)->second == begin_ns)
      std::prev(next)->second = end_ns;
    else
      busy_.emplace_hint(next, begin_ns, end_ns);
  }
}

void LinkWay::release(const std::vector<Span>& spans) {
  for (const auto& [begin_ns, end_ns] : spans) {
    const auto around = std::prev(busy_.upper_bound(begin_ns));
    const auto [from_ns, to_ns] = *around;
    busy_.erase(around);
    if (from_ns < begin_ns) busy_.emplace(from_ns, begin_ns);
    if (end_ns < to_ns) busy_.emplace(end_ns, to_ns);
  }
}

// The operator that runs then, of `low` to `high`; the end of the step is a position too.
Position LinkCalendar::position_at(int64_t ns, Position low, Position high) const {
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
  const auto from_ns = timetable_.start_ns(from + 1);
  const auto until_ns = timetable_.start_ns(to) - link_.latency_ns;
  if (from_ns + link_.latency_ns > until_ns - 2 * copy_ns) return std::nullopt;
  RoundTrip trip{.out = out_.earliest(from_ns, copy_ns), .back = back_.latest(until_ns, copy_ns)};
  const auto out_ns = (trip.out.empty() ? from_ns : trip.out.back().end_ns) + link_.latency_ns;
  const auto back_ns = trip.back.empty() ? until_ns : trip.back.front().begin_ns;
  if (out_ns > back_ns) return std::nullopt;
  trip.away_from = position_at(out_ns, from + 1, to) + 1;
  trip.back_at = position_at(back_ns, from + 1, to);
  return trip.away_from < trip.back_at ? std::optional(std::move(trip)) : std::nullopt;
}

void LinkCalendar::take(const RoundTrip& trip) {
  out_.take(trip.out);
  back_.take(trip.back);
}

void LinkCalendar::release(const RoundTrip& trip) {
  out_.release(trip.out);
  back_.release(trip.back);
}

}  // namespace tierpilot::swap
