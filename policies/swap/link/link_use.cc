#include "policies/swap/link/link_use.h"

#include <algorithm>

#include "policies/swap/link/link_calendar.h"

namespace tierpilot::swap {
namespace {

// All that one operator made and that is away: it is run again unless all of it comes back.
struct Candidate {
  double making_ns = 0;
  int64_t bytes = 0;
  struct Part {
    StorageId storage;
    int64_t bytes;
    Absence* absence;
  };
  std::vector<Part> parts{};

  double ns_per_byte() const { return making_ns / static_cast<double>(bytes); }
};

std::vector<Candidate> by_operator(const Graph& graph, Plan& plan) {
  std::vector<Candidate> made(graph.operators.size());
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
    const auto& tensors = graph.storages[storage].tensors;
    const auto bytes = graph.storages[storage].bytes;
    if (tensors.empty() || bytes == 0) continue;
    const auto maker = graph.tensors[tensors.front()].maker;
    if (maker == kNone) continue;
    for (auto& absence : plan.absences[storage]) {
      if (absence.action != Action::kRecompute) continue;
      made[maker].making_ns = static_cast<double>(graph.operators[maker].time_ns);
      made[maker].bytes += bytes;
      made[maker].parts.push_back({storage, bytes, &absence});
    }
  }
  std::erase_if(made, [](const Candidate& candidate) { return candidate.parts.empty(); });
  std::stable_sort(made.begin(), made.end(),
                   [](const auto& a, const auto& b) { return a.ns_per_byte() > b.ns_per_byte(); });
  return made;
}

// Both ways for all of it or for nothing.
bool travels(const Candidate& candidate, LinkCalendar& calendar) {
  std::vector<RoundTrip> trips;
  for (const auto& [storage, bytes, absence] : candidate.parts) {
    const auto trip = calendar.find(absence->from, absence->to, bytes);
    if (!trip) {
      for (const auto& taken : trips) calendar.release(taken);
      return false;
    }
    calendar.take(*trip);
    trips.push_back(*trip);
  }
  return true;
}

}  // namespace

void change_way(StorageId storage, Absence& absence, Timetable& timetable) {
  if (absence.action == Action::kSwap) {
    absence.action = Action::kRecompute;
    return;
  }
  absence.action = Action::kSwap;
  if (timetable.next_use(storage, absence.from) == kNone)
    timetable.also_used(storage, {absence.to});
}

Plan with_link(const Graph& graph, Timetable& timetable, const Link& link, Plan plan,
               double share) {
  const auto candidates = by_operator(graph, plan);
  double bytes_left = 0;
  for (const auto& candidate : candidates)
    bytes_left += share * static_cast<double>(candidate.bytes);
  LinkCalendar calendar(timetable, link);
  for (const auto& candidate : candidates) {
    if (bytes_left <= 0) break;
    if (!travels(candidate, calendar)) continue;
    for (const auto& part : candidate.parts) change_way(part.storage, *part.absence, timetable);
    bytes_left -= static_cast<double>(candidate.bytes);
  }
  return plan;
}

}  // namespace tierpilot::swap
