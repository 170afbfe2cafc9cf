#include "policies/sharing/fragmentation.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace tierpilot::sharing {

std::vector<TypicalRequest> typical_requests(const std::vector<Request>& requests,
                                             double coverage) {
  const auto key = [](const Request& r) {
    return std::tuple(r.units, r.share.milli, r.share.memory_bytes, r.cpu_milli, r.memory_bytes,
                      r.models);
  };
  std::map<decltype(key(Request{})), std::pair<Request, uint64_t>> counts;
  for (const auto& request : requests) {
    auto& [kept, count] = counts[key(request)];
    kept = request;
    ++count;
  }
  std::vector<TypicalRequest> typical;
  for (const auto& [_, entry] : counts)
    typical.push_back({entry.first, static_cast<double>(entry.second)});
  std::stable_sort(typical.begin(), typical.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  const double wanted = coverage * static_cast<double>(requests.size());
  double covered = 0;
  size_t kept = 0;
  while (kept < typical.size() && covered < wanted) covered += typical[kept++].share;
  typical.resize(kept);
  for (auto& each : typical) each.share /= covered;
  return typical;
}

std::vector<TypicalRequest> representative(std::vector<TypicalRequest> typical, size_t most) {
  if (typical.size() <= most) return typical;
  std::stable_sort(typical.begin(), typical.end(), [](const auto& a, const auto& b) {
    const auto asks = [](const Request& r) {
      return std::tuple(r.units, r.models, r.share.milli, r.cpu_milli, r.memory_bytes);
    };
    return asks(a.request) < asks(b.request);
  });
  const double each = 1 / static_cast<double>(most);
  std::vector<TypicalRequest> kept;
  double passed = 0, next = each / 2;
  for (auto& one : typical) {
    passed += one.share;
    one.share = 0;
    for (; next < passed && kept.size() < most; next += each) one.share += each;
    if (one.share > 0) kept.push_back(one);
  }
  double all = 0;
  for (const auto& one : kept) all += one.share;
  for (auto& one : kept) one.share /= all;
  return kept;
}

Fragmentation::Fragmentation(const std::vector<TypicalRequest>& typical) {
  // Alike but for what does not count here: one.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, double> wants;
  for (const auto& [request, share] : typical)
    if (request.units > 0 && request.share.milli > 0)
      wants[{request.share.milli, request.units, request.cpu_milli, request.models}] += share;
  for (const auto& [want, share] : wants) {
    const auto& [milli, units, cpu_milli, models] = want;
    wants_.push_back({cpu_milli, units, milli, models, share});
  }
}

double Fragmentation::milli(const Node& node) const {
  std::array<uint32_t, kMostUnits> free;
  const size_t count = std::min<size_t>(node.units.size(), kMostUnits);
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += free[i] = node.units[i].free_milli;
  if (total == 0) return 0;
  std::sort(free.begin(), free.begin() + static_cast<ptrdiff_t>(count));
  // As wants come by rising milli, units drop out one after the other.
  size_t first = 0;
  uint64_t usable = total;
  double used = 0;
  for (const auto& want : wants_) {
    while (first < count && free[first] < want.milli) usable -= free[first++];
    if (first == count) break;
    if (want.units <= count - first && want.cpu_milli <= node.cpu_milli &&
        (want.models >> node.model & 1))
      used += want.share * static_cast<double>(usable);
  }
  return static_cast<double>(total) - used;
}

}  // namespace tierpilot::sharing
