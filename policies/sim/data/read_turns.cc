#include "policies/sim/data/read_turns.h"

#include <utility>

namespace tierpilot::sim {

ReadTurns::ReadTurns(const ClusterSpec& cluster, Requests& requests) : requests_(requests) {
  for (const NodeGroup& group : cluster.groups)
    nodes_.resize(nodes_.size() + group.count, Node{.readers = group.readers, .line = {}});
}

void ReadTurns::take(DataRequest& request, uint32_t source) {
  ++nodes_[source].taken;
  request.source = source;
  request.has_turn = true;
}

void ReadTurns::wait(uint32_t id, uint32_t source) {
  requests_[id].source = source;
  requests_.enqueue(nodes_[source].line, id);
}

void ReadTurns::give(uint32_t id, uint32_t source) {
  requests_[id].source = source;
  requests_[id].has_turn = true;
  requests_.go_on(id);
}

void ReadTurns::pass(DataRequest& request) {
  Node& source = nodes_[request.source];
  if (source.line.empty())
    --source.taken;
  else
    give(requests_.dequeue(source.line), request.source);
  request.source = kNone;
  request.has_turn = false;
}

void ReadTurns::leave(uint32_t id) {
  DataRequest& request = requests_[id];
  if (request.source == kNone || request.has_turn) return;
  requests_.leave(nodes_[std::exchange(request.source, kNone)].line, id);
}

void ReadTurns::send_to_copy(uint32_t source, uint32_t copy, const DataItem& item) {
  RequestLine& line = nodes_[source].line;
  RequestLine staying;
  bool stays = true;
  while (!line.empty()) {
    const uint32_t id = requests_.dequeue(line);
    const DataRequest& other = requests_[id];
    const DataItem& wanted = other.items[other.next];
    const bool same = wanted.dataset == item.dataset && wanted.version == item.version;
    if (same) stays = !stays;
    if (!same || stays || other.node == copy) {
      requests_.enqueue(staying, id);
    } else if (any_left(copy)) {
      ++nodes_[copy].taken;
      give(id, copy);
    } else {
      wait(id, copy);
    }
  }
  line = staying;
}

void ReadTurns::source_failed(uint32_t source) {
  nodes_[source].taken = 0;
  nodes_[source].line = {};
}

}  // namespace tierpilot::sim
