#include "policies/swap/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

namespace {
// Operators that take no time could be run again without end.
constexpr int64_t kMostRunsEach = 200, kMostRunsMore = 10'000;
}  // namespace

Machine::Machine(const Graph& graph, const Limits& limits, Manager& manager)
    : graph_(graph),
      limits_(limits),
      manager_(manager),
      slots_(graph.storages.size()),
      made_(graph.tensors.size()),
      candidates_(graph.storages.size() + 1) {
  for (const auto& op : graph.operators) outcome_.base_time_ns += op.time_ns;
  candidates_[0] = {kNone, kNone};
}

Outcome Machine::run() {
  bool good = true;
  for (const auto& event : graph_.events)
    if (good = handle(event); !good) break;
  for (const auto output : graph_.outputs) {
    if (!good) break;
    good = bring_back(output);
    if (!good) break;
    const auto storage = graph_.tensors[output].storage;
    stall_until(slots_[storage].ready_ns);
    slots_[storage].leaving = false;
    slots_[storage].pinned = true;
    unlist(storage);
  }
  outcome_.done = good;
  outcome_.clock_ns = clock_ns_;
  return outcome_;
}

bool Machine::fail(std::string reason) {
  outcome_.reason = std::move(reason);
  return false;
}

bool Machine::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kConstant:
      return declare(event.id);
    case Event::Kind::kRun:
      manager_.before(*this, event.id);
      if (!execute(event.id, true)) return false;
      manager_.after(*this, event.id);
      return true;
    case Event::Kind::kRetain:
      ++slots_[graph_.tensors[event.id].storage].handles;
      return true;
    case Event::Kind::kDrop:
      break;
  }
  const auto storage = graph_.tensors[event.id].storage;
  if (--slots_[storage].handles == 0 && slots_[storage].listed && manager_.frees_unreferenced())
    drop(storage);
  return true;
}

bool Machine::declare(StorageId storage) {
  if (!allocate(graph_.storages[storage].bytes, "a constant")) return false;
  auto& slot = slots_[storage];
  slot.resident = slot.pinned = true;
  ++slot.handles;
  made_[graph_.storages[storage].tensors.front()] = 1;
  return true;
}

bool Machine::allocate(int64_t bytes, const std::string& what) {
  settle();
  if (!fits(bytes) && !manager_.make_room(*this, bytes))
    return fail(fmt::format("out of memory: {} needs {} bytes beside {} that cannot leave", what,
                            bytes, used_));
  used_ += bytes;
  outcome_.peak_bytes = std::max(outcome_.peak_bytes, used_);
  return true;
}

void Machine::enter(OperatorId op, bool first) {
  frames_.push_back({op, missing_.size(), first});
  const auto& args = graph_.operators[op].args;
  for (const auto arg : args) slots_[graph_.tensors[arg].storage].accessed_ns = clock_ns_;
  for (const auto arg : args) {
    if (present(arg))
      lock(graph_.tensors[arg].storage);
    else
      missing_.push_back(arg);
  }
  std::reverse(missing_.begin() + static_cast<ptrdiff_t>(frames_.back().missing), missing_.end());
}

// Recursion over absent arguments, with a stack of its own: logs can be as deep as they are long.
bool Machine::execute(OperatorId op, bool first) {
  const auto bottom = frames_.size();
  enter(op, first);
  while (frames_.size() > bottom) {
    const auto frame = frames_.back();
    if (missing_.size() == frame.missing) {
      if (!finish(frame)) return false;
      frames_.pop_back();
      continue;
    }
    const auto arg = missing_.back();
    if (!fetch(arg)) return false;
    if (present(arg)) {
      lock(graph_.tensors[arg].storage);
      missing_.pop_back();
    } else {
      if (!limits_.recompute) return fail("a tensor left without a copy");
      enter(graph_.tensors[arg].maker, false);
    }
  }
  return true;
}

// Over the link, when the host has it; what has to be recomputed stays absent.
bool Machine::fetch(TensorId tensor) {
  const auto storage = graph_.tensors[tensor].storage;
  if (present(tensor) || !kept(tensor)) return true;
  if (!allocate(graph_.storages[storage].bytes, "a tensor from the host")) return false;
  used_ -= graph_.storages[storage].bytes;
  swap_in(storage);
  return true;
}

bool Machine::bring_back(TensorId tensor) {
  if (!fetch(tensor)) return false;
  if (present(tensor)) return true;
  if (!limits_.recompute) return fail("a tensor left without a copy");
  return execute(graph_.tensors[tensor].maker, false);
}

bool Machine::finish(const Frame& frame) {
  const auto& op = graph_.operators[frame.op];
  int64_t need = 0;
  for (const auto output : op.outputs)
    if (graph_.tensors[output].owner) need += graph_.storage_of(output).bytes;
  if (!allocate(need, fmt::format("operator {} '{}'", frame.op, op.name))) return false;
  for (const auto arg : op.args) stall_until(slots_[graph_.tensors[arg].storage].ready_ns);
  clock_ns_ += op.time_ns;
  if (!frame.first) {
    ++outcome_.counts.recomputations;
    outcome_.counts.recomputed_ns += op.time_ns;
    const auto most = static_cast<int64_t>(graph_.operators.size()) * kMostRunsEach + kMostRunsMore;
    const auto more = static_cast<double>(outcome_.counts.recomputed_ns);
    if (more > (limits_.thrash_limit - 1) * static_cast<double>(outcome_.base_time_ns) ||
        outcome_.counts.recomputations > most)
      return fail("thrashing: recomputes for longer than the limit allows");
  }
  if (frame.first) runs_ = frame.op + 1;
  for (const auto output : op.outputs) {
    auto& slot = slots_[graph_.tensors[output].storage];
    if (frame.first) {
      ++slot.handles;
      if (std::exchange(slot.last_maker, frame.op) != frame.op) slot.cost_ns += op.time_ns;
      slot.accessed_ns = clock_ns_;
    }
    place(output);
  }
  for (const auto arg : op.args) unlock(graph_.tensors[arg].storage);
  return true;
}

void Machine::place(TensorId tensor) {
  const auto storage = graph_.tensors[tensor].storage;
  auto& slot = slots_[storage];
  made_[tensor] = 1;
  if (!graph_.tensors[tensor].owner) return;
  if (slot.resident) {
    used_ -= graph_.storages[storage].bytes;  // the second copy
    return;
  }
  slot.resident = true;
  slot.ready_ns = 0;
  list(storage);
  manager_.arrived(*this, storage);
}

void Machine::lock(StorageId storage) {
  auto& slot = slots_[storage];
  ++slot.locks;
  slot.leaving = false;  // still here: only the copy goes on
  unlist(storage);
}

void Machine::unlock(StorageId storage) {
  auto& slot = slots_[storage];
  if (--slot.locks > 0 || slot.pinned) return;
  list(storage);
  manager_.unlocked(*this, storage);
}

}  // namespace tierpilot::swap
