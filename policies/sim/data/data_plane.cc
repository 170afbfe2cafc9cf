#include "policies/sim/data/data_plane.h"

#include <algorithm>

namespace tierpilot::sim {
namespace {

double bytes_while_freed(const TierSpeeds& tiers, double bytes_per_s) {
  return tiers.free_bytes_per_s > 0 ? bytes_per_s / tiers.free_bytes_per_s : 0;
}

}  // namespace

DataPlane::DataPlane(const ClusterSpec& cluster, const Workload& workload, ReplicaStore& store,
                     EventQueue& events, Client& client)
    : workload_(workload),
      store_(store),
      flows_(events),
      client_(client),
      request_of_(workload.tasks.size(), kNone) {
  for (const NodeGroup& group : cluster.groups) {
    Node node;
    node.kind = static_cast<uint32_t>(kinds_.size());
    kinds_.push_back({group.movers, group.readers,
                      group.tiers.promote_start_s * group.tiers.promote_bytes_per_s,
                      group.tiers.evict_start_s * group.tiers.evict_bytes_per_s,
                      group.link_latency_s * group.link_bytes_per_s,
                      bytes_while_freed(group.tiers, group.tiers.evict_bytes_per_s),
                      bytes_while_freed(group.tiers, group.tiers.fast_copy_bytes_per_s)});
    for (uint32_t i = 0; i < group.count; ++i) {
      // Processes of one machine share its memory and disk.
      if (i == 0 || group.shared_cores == 0) {
        node.first_link = flows_.add_link(group.tiers.promote_bytes_per_s);  // in order of Resource
        flows_.add_link(group.tiers.evict_bytes_per_s);
        flows_.add_link(group.tiers.fast_copy_bytes_per_s);
        flows_.add_link(group.link_bytes_per_s);
        flows_.add_link(group.link_bytes_per_s);
      }
      nodes_.push_back(node);
    }
  }
}

uint32_t DataPlane::new_request() {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(requests_.size()));
    requests_.emplace_back();
  }
  const uint32_t id = free_.back();
  free_.pop_back();
  requests_[id] = Request{};
  return id;
}

void DataPlane::free_request(uint32_t id) {
  request_of_[requests_[id].task] = kNone;
  free_.push_back(id);
}

void DataPlane::enqueue(Waiting& list, uint32_t id) {
  requests_[id].behind = kNone;
  (list.empty() ? list.first : requests_[list.last].behind) = id;
  list.last = id;
}

uint32_t DataPlane::dequeue(Waiting& list) {
  const uint32_t id = list.first;
  list.first = requests_[id].behind;
  return id;
}

void DataPlane::leave(Waiting& list, uint32_t id) {
  uint32_t before = kNone;
  for (uint32_t at = list.first; at != id; at = requests_[at].behind) {
    if (at == kNone) return;
    before = at;
  }
  (before == kNone ? list.first : requests_[before].behind) = requests_[id].behind;
  if (list.last == id) list.last = before;
}

void DataPlane::ask(uint32_t task, uint32_t node) {
  const uint32_t id = new_request();
  Request& request = requests_[id];
  request.task = task;
  request.node = node;
  request_of_[task] = id;
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    request.items.push_back({use.dataset, store_.version(use.dataset), use.write});
}

void DataPlane::serve(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = request_of_[task];
  Request& request = requests_[id];
  request.service.asked_ns = now_ns;
  enqueue(nodes_[request.node].for_pins, id);
  begin_possible(request.node);
  run_ready();
}

bool DataPlane::admit(Request& request) {
  auto& cache = store_.cache(request.node);
  uint64_t need = 0;
  for (const Item& item : request.items) {
    const Replica* replica = store_.find(request.node, item.dataset, item.version);
    if (item.write || !replica || replica->pins == 0) need += store_.bytes(item.dataset);
  }
  if (cache.pinned_bytes + need > cache.fast.budget()) return false;
  for (Item& item : request.items) {
    if (item.write) {
      cache.pinned_bytes += store_.bytes(item.dataset);
    } else {
      item.replica = &store_.entry(request.node, item.dataset, item.version);
      // An entry made anew for a version that has been overwritten goes with its last use.
      item.replica->doomed = item.version != store_.version(item.dataset);
      store_.pin(*item.replica);
    }
  }
  request.admitted = true;
  return true;
}

void DataPlane::begin_possible(uint32_t index) {
  Node& node = nodes_[index];
  while (!node.for_pins.empty() && admit(requests_[node.for_pins.first]))
    enqueue(node.for_mover, dequeue(node.for_pins));
  for (; !node.for_mover.empty() && node.movers_busy < kind(node).movers; ++node.movers_busy) {
    ready_.push_back(dequeue(node.for_mover));
    requests_[ready_.back()].step = Step::kWorking;
  }
}

void DataPlane::run_ready() {
  // advance() adds to the list.
  for (size_t i = 0; i < ready_.size(); ++i) advance(ready_[i]);
  ready_.clear();
}

void DataPlane::advance(uint32_t id) {
  Request& request = requests_[id];
  while (request.next < request.items.size()) {
    Item& item = request.items[request.next];
    const Progress progress = item.write ? copy_for_writing(id, item) : read(id, item);
    if (progress == Progress::kUnderWay) return;
    if (progress == Progress::kFailed)
      return unserved(id, item.version != store_.version(item.dataset));
    ++request.next;
    request.room_taken = false;
  }
  request.step = Step::kServed;
  const uint32_t node = request.node;
  end_serving(request);
  client_.served(now_ns_, request.task, request.service);
  begin_possible(node);
}

void DataPlane::end_serving(Request& request) {
  --nodes_[request.node].movers_busy;
}

DataPlane::Progress DataPlane::wait_idle(uint32_t id) {
  enqueue(nodes_[requests_[id].node].for_idle, id);
  return Progress::kUnderWay;
}

void DataPlane::wake_idle(Node& node) {
  while (!node.for_idle.empty()) ready_.push_back(dequeue(node.for_idle));
}

void DataPlane::start_flow(uint32_t id, double bytes, std::initializer_list<uint32_t> links) {
  Request& request = requests_[id];
  if (request.step == Step::kWorking) {
    ++nodes_[request.node].transfers;
    bytes *= client_.transfer(now_ns_, request.node, true);
  }
  request.flow = flows_.start(now_ns_, bytes, links, id);
}

void DataPlane::end_transfer(uint32_t node) {
  --nodes_[node].transfers;
  client_.transfer(now_ns_, node, false);
}

bool DataPlane::flow_event(const Event& event) {
  const auto id = flows_.take_ended(event);
  if (!id) return false;
  now_ns_ = event.at_ns;
  Request& request = requests_[*id];
  request.flow = kNone;
  if (request.step == Step::kSettling) {
    settled(*id, true);
  } else {
    end_transfer(request.node);
    if (request.victim) {
      if (request.writes_back) store_.gain_slow(*request.victim);
      evicted(request);
    } else {
      loaded(request);
    }
    ready_.push_back(*id);
  }
  run_ready();
  return true;
}

}  // namespace tierpilot::sim
