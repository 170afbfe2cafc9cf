#include "policies/sharing/usable_share.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tierpilot::sharing {
namespace {

struct Room {
  uint32_t milli = 0;   // free on units that one request of the kind could be on
  uint32_t copies = 0;  // of a request of the kind, as far as units go
};

Room room_for(const std::vector<Unit>& all, uint32_t milli, uint32_t units) {
  uint32_t free = 0, shares = 0, fitting = 0;
  for (const auto& unit : all) {
    if (unit.free_milli < milli) continue;
    free += unit.free_milli;
    shares += unit.free_milli / milli;
    ++fitting;
  }
  if (fitting < units) return {};
  return {free, shares / units};
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
    if (kinds_.empty() || kinds_.back().milli != milli || kinds_.back().units != units ||
        kinds_.back().models != models)
      kinds_.push_back({milli, units, models, wants_.size(), wants_.size()});
    Want next{cpu_milli, memory_bytes, share, memory_bytes, share};
    if (kinds_.back().begin < kinds_.back().end) {
      next.most_memory_bytes = std::max(memory_bytes, wants_.back().most_memory_bytes);
      next.share_so_far += wants_.back().share_so_far;
    }
    wants_.push_back(next);
    ++kinds_.back().end;
  }
}

double UsableShare::content(const Kind& kind, uint32_t cpu_milli, uint64_t memory_bytes) const {
  const auto begin = wants_.begin() + static_cast<ptrdiff_t>(kind.begin);
  const auto end =
      std::upper_bound(begin, wants_.begin() + static_cast<ptrdiff_t>(kind.end), cpu_milli,
                       [](uint32_t cores, const Want& want) { return cores < want.cpu_milli; });
  if (begin == end) return 0;
  if (end[-1].most_memory_bytes <= memory_bytes) return end[-1].share_so_far;
  double share = 0;
  for (auto want = begin; want != end; ++want)
    share += want->memory_bytes <= memory_bytes ? want->share : 0;
  return share;
}

// A request fits as often as there are numbers for which that part of the host is enough. The share
// of those that do falls with the number, in few steps: only where it differs is looked between.
UsableShare::Fitting UsableShare::fitting(const Kind& kind, uint32_t cpu_milli,
                                          uint64_t memory_bytes, uint32_t copies) const {
  const auto of_part = [&](uint32_t n) { return content(kind, cpu_milli / n, memory_bytes / n); };
  // Of all numbers in (below, last].
  const auto sum = [&](auto& self, uint32_t below, uint32_t last, double most,
                       double least) -> double {
    if (most == least || last == below + 1) return least * (last - below);
    const uint32_t middle = below + (last - below) / 2;
    const double share = of_part(middle);
    return self(self, below, middle, most, share) + self(self, middle, last, share, least);
  };
  Fitting all{.share = of_part(1)};
  all.copies = all.share;
  if (copies > 1 && all.share > 0) all.copies += sum(sum, 1, copies, all.share, of_part(copies));
  return all;
}

double UsableShare::milli(const Node& node) const {
  return OnHost(*this, node).milli(node.units);
}

UsableShare::OnHost::OnHost(const UsableShare& usable, const Node& host)
    : usable_(usable),
      cpu_milli_(host.cpu_milli),
      memory_bytes_(host.memory_bytes),
      model_(host.model),
      known_(usable.kinds_.size()) {}

UsableShare::Fitting UsableShare::OnHost::fitting(size_t kind, uint32_t copies) {
  Known& known = known_[kind];
  for (size_t i = 0; i < known.copies.size(); ++i)
    if (known.copies[i] == copies) return known.fitting[i];
  const auto fitting = usable_.fitting(usable_.kinds_[kind], cpu_milli_, memory_bytes_, copies);
  std::swap(known.copies[0], known.copies[1]);
  std::swap(known.fitting[0], known.fitting[1]);
  known.copies[0] = copies;
  known.fitting[0] = fitting;
  return fitting;
}

double UsableShare::OnHost::milli(const std::vector<Unit>& units) {
  uint32_t most = 0;
  for (const auto& unit : units) most = std::max(most, unit.free_milli);
  double sum = 0;
  for (size_t i = 0; i < usable_.kinds_.size(); ++i) {
    const Kind& kind = usable_.kinds_[i];
    if (kind.milli > most) break;
    if (!(kind.models >> model_ & 1)) continue;
    const Room room = room_for(units, kind.milli, kind.units);
    if (room.copies == 0) continue;
    const auto [share, copies] = fitting(i, room.copies);
    sum += (share * room.milli + copies * kind.milli * kind.units) / 2;
  }
  return sum;
}

}  // namespace tierpilot::sharing
