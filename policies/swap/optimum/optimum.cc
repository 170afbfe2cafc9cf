#include "policies/swap/optimum/optimum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "policies/swap/optimum/program.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {
namespace {

using Column = Program::Column;
using Terms = Program::Terms;
using Stage = uint32_t;  // before and with the program's operator of that number; the last: the end

constexpr double kUnit = 1000;  // the budget, in the program's numbers
constexpr double kSet = 0.5;    // more than that is 1

class Formulation {
 public:
  Formulation(const Graph& graph, const Limits& limits)
      : graph_(graph),
        timetable_(graph),
        stages_(static_cast<Stage>(graph.operators.size()) + 1),
        scale_(kUnit / static_cast<double>(std::max<int64_t>(limits.budget_bytes, 1))) {
    for (const auto& op : graph.operators) base_time_ns_ += op.time_ns;
    list_uses();
    add_variables();
    for (Stage stage = 0; stage < stages_; ++stage) {
      add_presence(stage);
      add_memory(stage);
    }
  }

  Program& program() { return program_; }

  Outcome outcome(const Program::Solution& solution) const {
    Outcome outcome{.done = true, .base_time_ns = base_time_ns_};
    for (const auto& [at, column] : runs_) {
      if (at.first == at.second || solution.values[column] < kSet) continue;
      ++outcome.counts.recomputations;
      outcome.counts.recomputed_ns += graph_.operators[at.second].time_ns;
    }
    for (const auto column : used_)
      outcome.peak_bytes =
          std::max(outcome.peak_bytes, static_cast<int64_t>(solution.values[column] / scale_));
    outcome.clock_ns = 1 + base_time_ns_ + outcome.counts.recomputed_ns;
    return outcome;
  }

  // Of a cost in the program's numbers.
  double overhead(double cost) const { return cost / kUnit + 1; }

 private:
  using At = std::pair<Stage, uint32_t>;  // with an operator or a tensor

  bool is_constant(TensorId tensor) const { return graph_.storage_of(tensor).constant; }
  double bytes(TensorId tensor) const {
    return graph_.tensors[tensor].owner
               ? scale_ * static_cast<double>(graph_.storage_of(tensor).bytes)
               : 0;
  }
  OperatorId maker(TensorId tensor) const { return graph_.tensors[tensor].maker; }
  // Who opened the storage that the tensor lies in.
  TensorId owner(TensorId tensor) const {
    for (const auto other : graph_.storage_of(tensor).tensors)
      if (graph_.tensors[other].owner) return other;
    return tensor;
  }

  // Operators that need the storage there, by who owns it; the end needs outputs.
  void list_uses() {
    uses_.resize(graph_.tensors.size());
    const auto use = [&](TensorId tensor, OperatorId op) {
      if (is_constant(tensor)) return;
      auto& list = uses_[owner(tensor)];
      if (list.empty() || list.back() != op) list.push_back(op);
    };
    for (OperatorId op = 0; op < graph_.operators.size(); ++op) {
      for (const auto arg : graph_.operators[op].args) use(arg, op);
      for (const auto output : graph_.operators[op].outputs) use(output, op);
    }
    for (const auto output : graph_.outputs) use(output, stages_ - 1);
    for (auto& list : uses_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  void add_variables() {
    for (Stage stage = 0; stage < stages_; ++stage) {
      for (OperatorId op = 0; op <= stage && op + 1 < stages_; ++op) {
        const bool first = op == stage;
        const double cost = first ? 0
                                  : kUnit * static_cast<double>(graph_.operators[op].time_ns) /
                                        static_cast<double>(std::max<int64_t>(base_time_ns_, 1));
        runs_[{stage, op}] = program_.binary(cost);
        if (first) program_.fix(runs_[{stage, op}], 1);
      }
      for (TensorId tensor = 0; tensor < graph_.tensors.size(); ++tensor)
        if (!is_constant(tensor) && maker(tensor) < stage)
          kept_[{stage, tensor}] = program_.binary();
    }
  }

  // What is needed is kept from the stage before, or made in this one.
  void add_presence(Stage stage) {
    const auto need = [&](Terms terms, TensorId tensor) {
      if (is_constant(tensor)) return;
      if (maker(tensor) <= stage && maker(tensor) + 1 < stages_)
        terms.emplace_back(runs_.at({stage, maker(tensor)}), -1);
      if (const auto kept = kept_.find({stage, tensor}); kept != kept_.end())
        terms.emplace_back(kept->second, -1);
      program_.at_most(terms, 0);
    };
    for (OperatorId op = 0; op <= stage && op + 1 < stages_; ++op)
      for (const auto arg : graph_.operators[op].args) need({{runs_.at({stage, op}), 1}}, arg);
    if (stage + 1 == stages_)
      for (const auto output : graph_.outputs) need_at_end(stage, output);
    for (const auto& [at, column] : kept_) {
      if (at.first != stage) continue;
      const auto tensor = at.second;
      Terms terms{{column, 1}, {runs_.at({stage - 1, maker(tensor)}), -1}};
      if (const auto before = kept_.find({stage - 1, tensor}); before != kept_.end())
        terms.emplace_back(before->second, -1);
      program_.at_most(terms, 0);
      if (const auto base = owner(tensor); base != tensor && !is_constant(base))
        program_.at_most({{column, 1}, {kept_.at({stage, base}), -1}}, 0);
    }
  }

  void need_at_end(Stage stage, TensorId output) {
    if (is_constant(output)) return;
    program_.at_most({{runs_.at({stage, maker(output)}), -1}, {kept_.at({stage, output}), -1}}, -1);
  }

  // The bytes that are there while each operator of the stage runs.
  void add_memory(Stage stage) {
    Terms before;  // what is there, less what is freed
    const auto position = std::min<Position>(stage, timetable_.end());
    const double constants = scale_ * static_cast<double>(timetable_.constant_bytes(position));
    for (const auto& [at, column] : kept_)
      if (at.first == stage && bytes(at.second) > 0) before.emplace_back(column, bytes(at.second));
    auto fixed = constants;
    const auto count = std::min<OperatorId>(stage + 1, stages_ - 1);
    for (OperatorId op = 0; op < count; ++op) {
      const auto used = program_.number(0, kUnit);
      used_.push_back(used);
      Terms terms = before;
      for (auto& term : terms) term.second = -term.second;
      terms.emplace_back(used, 1);
      double made = 0;
      for (const auto output : graph_.operators[op].outputs)
        if (!is_constant(output)) made += bytes(output);
      terms.emplace_back(runs_.at({stage, op}), -made);
      program_.equal(terms, fixed);
      before = {{used, 1}};
      fixed = 0;
      for (const auto tensor : touched(op))
        before.emplace_back(free_after(stage, op, tensor), -bytes(tensor));
    }
    if (stage + 1 == stages_) program_.at_most(before, kUnit - fixed);
  }

  // Storages with bytes that the operator reads or makes, by owner.
  std::vector<TensorId> touched(OperatorId op) const {
    std::vector<TensorId> owners;
    const auto add = [&](TensorId tensor) {
      if (!is_constant(tensor) && bytes(owner(tensor)) > 0) owners.push_back(owner(tensor));
    };
    for (const auto arg : graph_.operators[op].args) add(arg);
    for (const auto output : graph_.operators[op].outputs) add(output);
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    return owners;
  }

  // 1 just where the operator runs, nobody after it in the stage needs the storage, and the next
  // stage does not get it.
  Column free_after(Stage stage, OperatorId op, TensorId tensor) {
    const auto freed = program_.binary();
    Terms hazards;
    double constant = 1;  // unless it runs
    hazards.emplace_back(runs_.at({stage, op}), -1);
    if (const auto next = kept_.find({stage + 1, tensor}); next != kept_.end())
      hazards.emplace_back(next->second, 1);
    for (const auto later : uses_[tensor]) {
      if (later <= op || later > stage) continue;
      if (later + 1 == stages_)
        constant += 1;
      else
        hazards.emplace_back(runs_.at({stage, later}), 1);
    }
    const double most = static_cast<double>(hazards.size()) + constant;
    // 1 - freed <= hazards, and hazards <= most * (1 - freed).
    Terms some{{freed, -1}}, none{{freed, most}};
    for (const auto& [column, factor] : hazards) {
      some.emplace_back(column, -factor);
      none.emplace_back(column, factor);
    }
    program_.at_most(some, constant - 1);
    program_.at_most(none, most - constant);
    return freed;
  }

  const Graph& graph_;
  const Timetable timetable_;
  const Stage stages_;
  const double scale_;
  int64_t base_time_ns_ = 0;
  Program program_;
  std::vector<std::vector<OperatorId>> uses_;
  std::map<At, Column> runs_, kept_;
  std::vector<Column> used_;
};

Outcome failed(const Graph& graph, std::string reason) {
  Outcome outcome{.reason = std::move(reason)};
  for (const auto& op : graph.operators) outcome.base_time_ns += op.time_ns;
  return outcome;
}

}  // namespace

PolicyInfo optimum_info() {
  return {"optimum", "planner", "recomputes the least, by integer programming; small steps only"};
}

Replayed replay_optimum(const Graph& graph, const Limits& limits, const OptimumLimits& effort) {
  Replayed replayed{.policy = optimum_info()};
  if (graph.operators.size() > kMostOptimumOperators) {
    replayed.outcome = failed(
        graph, fmt::format("the optimum is for steps of up to {} operators, and this one has {}",
                           kMostOptimumOperators, graph.operators.size()));
    return replayed;
  }
  Formulation formulation(graph, limits);
  const auto solution = formulation.program().minimise(effort.seconds, effort.nodes);
  if (!solution) {
    replayed.outcome = failed(graph, solution.error().code == ErrorCode::kNotFound
                                         ? "no order of recomputing fits the budget"
                                         : "no plan: " + solution.error().message);
    return replayed;
  }
  replayed.outcome = formulation.outcome(*solution);
  const double found = formulation.overhead(solution->cost);
  const double off = found / formulation.overhead(solution->bound) - 1;
  replayed.origin = solution->proven ? "proven" : fmt::format("within {:.1f} %", 100 * off);
  if (replayed.outcome.overhead() > limits.thrash_limit) {
    replayed.outcome.done = false;
    replayed.outcome.reason = "thrashing: recomputes for longer than the limit allows";
  }
  return replayed;
}

}  // namespace tierpilot::swap
