// Bringing data in from another node, when it is the request's turn there: a source whose link is
// shared by few is soon done with them, and then there are more sources (as
// daemon/agent/data/read_turns.h; upload slots: Cohen, Incentives Build Robustness in BitTorrent,
// 2003).
#include <algorithm>

#include "policies/sim/data/data_plane.h"

namespace tierpilot::sim {

DataPlane::Progress DataPlane::fetch(uint32_t id, const Item& item) {
  Request& request = requests_[id];
  if (request.has_turn) {
    const Replica* held = store_.find(request.source, item.dataset, item.version);
    if (held && (held->fast() || held->slow())) return fetch_from(id, *held);
    pass_turn(request);
  }
  request.source = kNone;
  const auto found = store_.sources(item.dataset, item.version, request.node, request.task);
  const auto sources = found.all();
  if (sources.empty()) return Progress::kFailed;
  const auto free = std::find_if(sources.begin(), sources.end(),
                                 [&](const auto& source) { return has_turn_left(source.node); });
  if (free != sources.end()) {
    ++nodes_[free->node].turns;
    request.source = free->node;
    request.has_turn = true;
    return fetch_from(id, *free->replica);
  }
  request.source = sources.front().node;
  enqueue(nodes_[request.source].for_turn, id);
  return Progress::kUnderWay;
}

DataPlane::Progress DataPlane::fetch_from(uint32_t id, const Replica& source) {
  const Node& here = nodes_[requests_[id].node];
  const Node& there = nodes_[source.node];
  const double sent = static_cast<double>(source.bytes) + kind(here).link_start_bytes;
  if (source.fast())
    start_flow(id, sent, {there.link(kUplink), here.link(kDownlink)});
  else
    start_flow(id, sent, {there.link(kSlowRead), there.link(kUplink), here.link(kDownlink)});
  return Progress::kUnderWay;
}

void DataPlane::give_turn(uint32_t id, uint32_t node) {
  requests_[id].source = node;
  requests_[id].has_turn = true;
  ready_.push_back(id);
}

void DataPlane::pass_turn(Request& request) {
  Node& source = nodes_[request.source];
  if (source.for_turn.empty())
    --source.turns;
  else
    give_turn(dequeue(source.for_turn), request.source);
  request.source = kNone;
  request.has_turn = false;
}

// Of those who wait at the source for what `copy` has read there every second goes on to it.
void DataPlane::send_to_copy(uint32_t source, uint32_t copy, const Item& item) {
  Waiting& line = nodes_[source].for_turn;
  Waiting staying;
  bool stays = true;
  while (!line.empty()) {
    const uint32_t id = dequeue(line);
    Request& other = requests_[id];
    const Item& wanted = other.items[other.next];
    const bool same = wanted.dataset == item.dataset && wanted.version == item.version;
    if (same) stays = !stays;
    if (!same || stays || other.node == copy) {
      enqueue(staying, id);
    } else if (has_turn_left(copy)) {
      ++nodes_[copy].turns;
      give_turn(id, copy);
    } else {
      other.source = copy;
      enqueue(nodes_[copy].for_turn, id);
    }
  }
  line = staying;
}

}  // namespace tierpilot::sim
