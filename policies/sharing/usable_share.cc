#include "policies/sharing/usable_share.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace tierpilot::sharing {
namespace {

template <class T>
double inverse(T value) {
  return value == 0 ? 0 : 1 / static_cast<double>(value);
}

struct Room {
  double milli = 0;   // free on units that one request of the kind could be on
  double copies = 0;  // of a request of the kind, as far as units go
};

Room room_for(const Node& node, uint32_t milli, uint32_t units) {
  uint64_t free = 0, shares = 0, fitting = 0;
  for (const auto& unit : node.units) {
    if (unit.free_milli < milli) continue;
    free += unit.free_milli;
    shares += unit.free_milli / milli;
    ++fitting;
  }
  if (fitting < units) return {};
  return {static_cast<double>(free), static_cast<double>(shares / units)};
}

}  // namespace

UsableShare::UsableShare(const std::vector<TypicalRequest>& typical) {
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, uint64_t>, double> wants;
  for (const auto& [request, share] : typical)
    if (request.units > 0 && request.share.milli > 0)
      wants[{request.share.milli, request.units, request.models, request.cpu_milli,
             request.memory_bytes}] += share;
  for (const auto& [want, share] : wants) {
    const auto& [milli, units, models, cpu_milli, memory_bytes] = want;
    if (kinds_.empty() || kinds_.back().milli != milli || kinds_.back().units != units)
      kinds_.push_back({milli, units, wants_.size(), wants_.size()});
    ++kinds_.back().end;
    wants_.push_back(
        {models, memory_bytes, cpu_milli, share, inverse(cpu_milli), inverse(memory_bytes)});
  }
}

double UsableShare::of_kind(const Kind& kind, const Node& node, double usable,
                            double copies) const {
  const double size = static_cast<double>(kind.milli) * kind.units;
  const double cpu_milli = node.cpu_milli;
  const double memory_bytes = static_cast<double>(node.memory_bytes);
  double sum = 0;
  for (size_t i = kind.begin; i < kind.end; ++i) {
    const Want& want = wants_[i];
    if (!(want.models >> node.model & 1) || want.cpu_milli > node.cpu_milli ||
        want.memory_bytes > node.memory_bytes)
      continue;
    double fit = copies;
    if (want.cpu_milli > 0) fit = std::min(fit, std::floor(cpu_milli * want.per_cpu_milli + 1e-9));
    if (want.memory_bytes > 0)
      fit = std::min(fit, std::floor(memory_bytes * want.per_memory_byte + 1e-9));
    sum += want.share * (usable + fit * size);
  }
  return sum / 2;
}

double UsableShare::milli(const Node& node) const {
  uint32_t most = 0;
  for (const auto& unit : node.units) most = std::max(most, unit.free_milli);
  double sum = 0;
  for (const auto& kind : kinds_) {
    if (kind.milli > most) break;
    const Room room = room_for(node, kind.milli, kind.units);
    if (room.copies > 0) sum += of_kind(kind, node, room.milli, room.copies);
  }
  return sum;
}

}  // namespace tierpilot::sharing
