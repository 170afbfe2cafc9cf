#include "policies/sim/data/dataset_holders.h"

#include <tuple>
#include <utility>

#include "policies/scheduling/source_rank.h"

namespace tierpilot::sim {

DatasetHolders::DatasetHolders(const Workload& workload) : entries_(workload.datasets.size()) {
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].bytes = workload.datasets[i].bytes;
}

DatasetHolders::Sources DatasetHolders::sources(uint32_t dataset, uint32_t version, uint32_t reader,
                                                uint32_t task) const {
  const Entry& entry = entries_[dataset];
  Sources sources;
  if (entry.version != version) return sources;
  auto& [best, count] = sources;
  std::array<SourceRank, std::tuple_size_v<decltype(sources.best)>> ranks;
  for (const Holder& holder : entry.holders) {
    if (holder.node == reader) continue;
    const SourceRank rank = source_rank(task, holder.node, holder.fast);
    if (count == best.size() && !(rank < ranks[count - 1])) continue;
    if (count < best.size()) ++count;
    size_t at = count - 1;
    for (; at > 0 && rank < ranks[at - 1]; --at) best[at] = best[at - 1], ranks[at] = ranks[at - 1];
    best[at] = holder;
    ranks[at] = rank;
  }
  return sources;
}

void DatasetHolders::list(Replica& replica) {
  Entry& entry = entries_[replica.dataset];
  const bool held = replica.fast() || replica.slow();
  if (!held || replica.version != entry.version) return;
  if (replica.holder == kNone) {
    availability_ += entry.holders.empty();
    replica.holder = static_cast<uint32_t>(entry.holders.size());
    entry.holders.push_back({&replica, replica.node, replica.fast()});
  }
  entry.holders[replica.holder].fast = replica.fast();
}

void DatasetHolders::unlist(Replica& replica) {
  if (replica.holder == kNone) return;
  auto& holders = entries_[replica.dataset].holders;
  holders.back().replica->holder = replica.holder;
  holders[replica.holder] = holders.back();
  holders.pop_back();
  availability_ += holders.empty();
  replica.holder = kNone;
}

DatasetHolders::Holders DatasetHolders::begin_version(uint32_t dataset) {
  Entry& entry = entries_[dataset];
  Holders older = std::move(entry.holders);
  entry.holders.clear();
  entry.copies_down = 0;
  ++entry.version;
  for (const Holder& holder : older) holder.replica->holder = kNone;
  availability_ -= !older.empty();  // it is held all the time: listing the new one counts it again
  return older;
}

}  // namespace tierpilot::sim
