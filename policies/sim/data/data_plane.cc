#include "policies/sim/data/data_plane.h"

#include <utility>

namespace tierpilot::sim {

DataPlane::DataPlane(const ClusterSpec& cluster, const Workload& workload, ReplicaStore& store,
                     EventQueue& events, DataClient& client)
    : workload_(workload),
      store_(store),
      client_(client),
      requests_(workload.tasks.size()),
      transfers_(cluster, events, client),
      admission_(cluster, store, requests_),
      turns_(cluster, requests_),
      room_(cluster.node_count(), store, requests_, transfers_, client),
      loads_(store, requests_, transfers_, turns_, room_),
      commits_(cluster.node_count(), store, requests_, transfers_) {}

void DataPlane::ask(uint32_t task, uint32_t node) {
  DataRequest& request = requests_.open(task, node);
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    request.items.push_back({use.dataset, store_.datasets().version(use.dataset), use.write});
}

void DataPlane::serve(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = requests_.of(task);
  requests_[id].service.asked_ns = now_ns;
  admission_.enqueue(id);
  admission_.begin_possible(requests_[id].node);
  advance_ready();
}

void DataPlane::advance_ready() {
  requests_.advance_ready([this](uint32_t id) { advance(id); });
}

void DataPlane::advance(uint32_t id) {
  DataRequest& request = requests_[id];
  while (request.next < request.items.size()) {
    const DataItem& item = request.items[request.next];
    const ItemProgress progress = loads_.go_on(now_ns_, id);
    if (progress == ItemProgress::kUnderWay) return;
    if (progress == ItemProgress::kFailed)
      return unserved(id, item.version != store_.datasets().version(item.dataset));
    ++request.next;
    request.room_taken = false;
  }
  request.step = ServingStep::kServed;
  const uint32_t node = request.node;
  admission_.mover_free(node);
  client_.served(now_ns_, request.task, request.service);
  admission_.begin_possible(node);
}

bool DataPlane::flow_event(const Event& event) {
  const auto id = transfers_.take_ended(event);
  if (!id) return false;
  now_ns_ = event.at_ns;
  DataRequest& request = requests_[*id];
  request.flow = kNone;
  if (request.step == ServingStep::kSettling) {
    settled(*id, true);
  } else {
    transfers_.over(now_ns_, request.node);
    request.victim ? room_.evicted(request) : loads_.arrived(now_ns_, request);
    requests_.go_on(*id);
  }
  advance_ready();
  return true;
}

}  // namespace tierpilot::sim
