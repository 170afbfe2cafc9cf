// The end of a request: what was written is committed, and what is given back when it fails.
#include <utility>

#include "policies/sim/data/data_plane.h"

namespace tierpilot::sim {

void DataPlane::unserved(uint32_t id, bool stale) {
  DataRequest& request = requests_[id];
  const uint32_t node = request.node;
  let_go(request);
  client_.unserved(now_ns_, request.task, stale);
  requests_.close(id);
  admission_.begin_possible(node);
}

void DataPlane::let_go(DataRequest& request) {
  const bool working = request.step == ServingStep::kWorking;
  if (request.flow != kNone) {
    transfers_.cancel(now_ns_, std::exchange(request.flow, kNone));
    if (working) transfers_.over(now_ns_, request.node);
  }
  if (request.has_turn) turns_.pass(request);
  if (working) admission_.mover_free(request.node);
  room_.spare_victim(request);
  room_.release_owned(request);
  admission_.give_back(request);
  client_.room_changed(request.node);
  room_.wake(request.node);
}

void DataPlane::abandon(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = requests_.of(task);
  if (id == kNone) return;
  admission_.leave(id);
  room_.leave(id);
  turns_.leave(id);
  commits_.leave(id);
  let_go(requests_[id]);
  requests_.close(id);
  requests_.stay(id);
}

void DataPlane::resume(int64_t now_ns, uint32_t node) {
  now_ns_ = now_ns;
  settle_next(node);
  admission_.begin_possible(node);
  advance_ready();
}

void DataPlane::source_failed(int64_t now_ns, uint32_t node) {
  now_ns_ = now_ns;
  for (uint32_t id = 0; id < requests_.size(); ++id) {
    DataRequest& request = requests_[id];
    if (request.source != node) continue;
    const bool about_to_begin = request.has_turn && request.flow == kNone;
    if (request.flow != kNone) {
      transfers_.cancel(now_ns, std::exchange(request.flow, kNone));
      transfers_.over(now_ns, request.node);
    }
    request.source = kNone;
    request.has_turn = false;
    if (!about_to_begin) requests_.go_on(id);
  }
  turns_.source_failed(node);
  advance_ready();
}

void DataPlane::finish(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = requests_.of(task);
  commits_.enqueue(id);
  settle_next(requests_[id].node);
  advance_ready();
}

void DataPlane::settle_next(uint32_t node) {
  while (commits_.may_begin(node))
    if (const auto at_once = commits_.begin_next(now_ns_, node))
      settled(at_once->id, at_once->committed);
}

void DataPlane::settled(uint32_t id, bool committed) {
  DataRequest& request = requests_[id];
  const uint32_t node = request.node, task = request.task;
  if (committed) commits_.publish(request);
  let_go(request);
  requests_.close(id);
  commits_.over(node);
  client_.settled(now_ns_, task, committed);
  admission_.begin_possible(node);
  settle_next(node);
}

}  // namespace tierpilot::sim
