#include "policies/swap/machine/step_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::swap {
namespace {

// Operators that take no time could be run again without end.
constexpr int64_t kMostRunsEach = 200, kMostRunsMore = 10'000;

class StepRun {
 public:
  StepRun(const Graph& graph, const Limits& limits, Manager& manager)
      : graph_(graph),
        limits_(limits),
        manager_(manager),
        history_(graph.storages.size()),
        machine_(graph, limits, history_, clock_, manager) {
    for (const auto& op : graph.operators) outcome_.base_time_ns += op.time_ns;
    left_ns_ = outcome_.base_time_ns;
  }

  Outcome run() {
    outcome_.done = run_events() && bring_outputs();
    outcome_.clock_ns = clock_.now_ns();
    outcome_.peak_bytes = machine_.device().peak_bytes();
    outcome_.counts.stalls = clock_.stalls();
    outcome_.counts.stall_ns = clock_.stall_ns();
    machine_.add_to(outcome_.counts);
    return std::move(outcome_);
  }

 private:
  struct Frame {
    OperatorId op;
    size_t missing;  // its absent arguments stand in missing_ from here on
    bool first;
  };

  bool run_events() {
    for (const auto& event : graph_.events)
      if (!handle(event)) return false;
    return true;
  }

  bool bring_outputs() {
    for (const auto output : graph_.outputs) {
      if (!bring_back(output)) return false;
      if (!machine_.present(output)) return fail("an output left again as it came back");
      const auto storage = graph_.tensors[output].storage;
      clock_.stall_until(machine_.ready_ns(storage));
      machine_.keep_for_good(storage);
    }
    return true;
  }

  bool fail(std::string reason) {
    outcome_.reason = std::move(reason);
    return false;
  }

  bool out_of_memory(int64_t bytes, std::string_view what) {
    return fail(fmt::format("out of memory: {} needs {} bytes beside {} that cannot leave", what,
                            bytes, machine_.device().used_bytes()));
  }

  bool handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kConstant:
        return declare(event.id);
      case Event::Kind::kRun:
        manager_.before(machine_, event.id);
        if (!execute(event.id, true)) return false;
        manager_.after(machine_, event.id);
        return true;
      case Event::Kind::kRetain:
        history_.retain(graph_.tensors[event.id].storage);
        return true;
      case Event::Kind::kDrop:
        break;
    }
    const auto storage = graph_.tensors[event.id].storage;
    if (history_.release(storage) && machine_.device().evictable(storage) &&
        manager_.frees_unreferenced())
      machine_.drop(storage);
    return true;
  }

  bool declare(StorageId storage) {
    const auto bytes = graph_.storages[storage].bytes;
    if (!machine_.make_room(bytes)) return out_of_memory(bytes, "a constant");
    machine_.take(bytes);
    machine_.place(graph_.storages[storage].tensors.front());
    history_.retain(storage);
    return true;
  }

  void enter(OperatorId op, bool first) {
    frames_.push_back({op, missing_.size(), first});
    const auto& args = graph_.operators[op].args;
    for (const auto arg : args) history_.accessed(graph_.tensors[arg].storage, clock_.now_ns());
    for (const auto arg : args) {
      if (machine_.present(arg))
        machine_.lock(graph_.tensors[arg].storage);
      else
        missing_.push_back(arg);
    }
    std::reverse(missing_.begin() + static_cast<ptrdiff_t>(frames_.back().missing), missing_.end());
  }

  // Recursion over absent arguments, with a stack of its own: logs can be as deep as they are long.
  bool execute(OperatorId op, bool first) {
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
      if (machine_.present(arg)) {
        machine_.lock(graph_.tensors[arg].storage);
        missing_.pop_back();
      } else {
        if (!limits_.recompute) return fail("a tensor left without a copy");
        enter(graph_.tensors[arg].maker, false);
      }
    }
    return true;
  }

  // Over the link, when the host has it; what has to be recomputed stays absent.
  bool fetch(TensorId tensor) {
    const auto storage = graph_.tensors[tensor].storage;
    if (machine_.present(tensor) || !machine_.kept(tensor)) return true;
    const auto bytes = graph_.storages[storage].bytes;
    if (!machine_.make_room(bytes)) return out_of_memory(bytes, "a tensor from the host");
    machine_.swap_in(storage);
    return true;
  }

  bool bring_back(TensorId tensor) {
    if (!fetch(tensor)) return false;
    if (machine_.present(tensor)) return true;
    if (!limits_.recompute) return fail("a tensor left without a copy");
    return execute(graph_.tensors[tensor].maker, false);
  }

  bool finish(const Frame& frame) {
    const auto& op = graph_.operators[frame.op];
    int64_t need = 0;
    for (const auto output : op.outputs)
      if (graph_.tensors[output].owner) need += graph_.storage_of(output).bytes;
    if (!machine_.make_room(need))
      return out_of_memory(need, fmt::format("operator {} '{}'", frame.op, op.name));
    machine_.take(need);
    for (const auto arg : op.args)
      clock_.stall_until(machine_.ready_ns(graph_.tensors[arg].storage));
    clock_.compute(op.time_ns);
    if (frame.first) {
      history_.ran(frame.op);
      left_ns_ -= op.time_ns;
    } else if (!count_recomputation(op.time_ns)) {
      return false;
    }
    if (clock_.now_ns() >= limits_.give_up_ns - left_ns_) return fail("given up");
    for (const auto output : op.outputs) {
      if (frame.first)
        history_.made(graph_.tensors[output].storage, frame.op, op.time_ns, clock_.now_ns());
      machine_.place(output);
    }
    for (const auto arg : op.args) machine_.unlock(graph_.tensors[arg].storage);
    return true;
  }

  // False, with the reason, where it is too much.
  bool count_recomputation(int64_t took_ns) {
    auto& counts = outcome_.counts;
    ++counts.recomputations;
    counts.recomputed_ns += took_ns;
    const auto most = static_cast<int64_t>(graph_.operators.size()) * kMostRunsEach + kMostRunsMore;
    const auto more = static_cast<double>(counts.recomputed_ns);
    if (more <= (limits_.thrash_limit - 1) * static_cast<double>(outcome_.base_time_ns) &&
        counts.recomputations <= most)
      return true;
    return fail("thrashing: recomputes for longer than the limit allows");
  }

  const Graph& graph_;
  const Limits& limits_;
  Manager& manager_;
  Outcome outcome_;
  int64_t left_ns_ = 0;  // of the program's own operators
  ReplayClock clock_;
  ProgramHistory history_;
  Machine machine_;
  std::vector<Frame> frames_;
  std::vector<TensorId> missing_;
};

}  // namespace

Outcome run_step(const Graph& graph, const Limits& limits, Manager& manager) {
  return StepRun(graph, limits, manager).run();
}

}  // namespace tierpilot::swap
