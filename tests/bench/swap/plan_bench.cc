// How long planning takes, for graphs of 5,000 tensors of several shapes: what `swap-quick` plans,
// and what a library plans with while it trains. Beside it, as the reference, one replay of the
// same graph under the score h_DTR_eq. Rounds take all in turn, so that a disturbance hits all
// alike.
//
//   bench_swap_plan [--rounds N] [--tensors N] [--skips N] [--table CSV]
//                   [--only GRAPH --policy swap] [LOG...]
//
// `--table` is an operator table, two nets of which are repeated until they have as many tensors;
// logs are those of Dynamic Tensor Rematerialization, as they are. `--only` takes no other graph,
// and `--policy` is what plans it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>

#include "policies/swap/learning/choice.h"
#include "policies/swap/learning/step_learner.h"
#include "policies/swap/policies.h"
#include "policies/swap/readers.h"
#include "tests/bench/swap/shapes.h"
#include "tests/unit/swap/chain.h"
#include "tests/unit/swap/skipping.h"

namespace {

using namespace tierpilot::swap;

struct Row {
  std::string name;
  size_t tensors, operators;
  std::function<std::string()> plan;  // says what came out
  std::function<void()> reference;
  std::string found{};
  // Where only a part of what `plan` does counts.
  std::function<double()> longest_ms{};
  std::vector<double> plan_ms{}, reference_ms{};
};

double timed_ms(const std::function<void()>& what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::string shown(const Outcome& outcome) {
  return outcome.done ? fmt::format("{:.3f}", outcome.overhead()) : "fails";
}

Limits limits_of(const Graph& graph, double ratio, double gb_per_s) {
  const auto peak = static_cast<double>(baseline(graph).peak_bytes);
  return {.budget_bytes = static_cast<int64_t>(ratio * peak),
          .link = {.gb_per_s = gb_per_s, .latency_ns = 10'000}};
}

void add(std::vector<Row>& rows, const std::shared_ptr<Graph>& graph, const std::string& policy) {
  for (const double ratio : {0.5, 0.3})
    for (const double gb_per_s : {0.0, 12.0}) {
      const auto limits = limits_of(*graph, ratio, gb_per_s);
      const auto by = [graph, limits](const std::string& named) {
        return replay(*graph, named, {.limits = limits})->outcome;
      };
      rows.push_back({.name = fmt::format("{} {} {:.0f}% {}", policy, graph->name, 100 * ratio,
                                          gb_per_s > 0 ? "link" : ""),
                      .tensors = graph->tensors.size(),
                      .operators = graph->operators.size(),
                      .plan = [by, policy] { return shown(by(policy)); },
                      .reference = [by] { by("h_DTR_eq"); }});
    }
}

// A link with which about half of what has to leave waits.
Limits library_limits(const ObservedStep& step) {
  const auto all = static_cast<double>(step.saved_bytes());
  return {.budget_bytes = static_cast<int64_t>(0.5 * static_cast<double>(step.kept_bytes())),
          .recompute = false,
          .link = {.gb_per_s = all / static_cast<double>(step.compute_ns()), .latency_ns = 10'000}};
}

// The longest that the learner takes between two steps, over its first twelve.
double learn(const ObservedStep& step, const Limits& limits) {
  StepLearner learner({.limits = limits});
  double longest_ms = 0;
  for (int run = 0; run < 12; ++run) {
    learner.begin();
    for (const auto& save : step.saves) learner.save(save);
    StepEnd seen{.step = step,
                 .step_ns = step.compute_ns() + 1'000'000 * (20 - run),
                 .stall_ns = step.compute_ns() / 20,
                 .peak_bytes = limits.budget_bytes - 1};
    const double ms = timed_ms([&] { learner.end(std::move(seen), 0); });
    longest_ms = std::max(longest_ms, ms);
  }
  return longest_ms;
}

void add_library(std::vector<Row>& rows, size_t saves) {
  const auto step = std::make_shared<ObservedStep>(observed(saves, 3));
  const auto graph = std::make_shared<Graph>(graph_of(*step).graph);
  const auto limits = library_limits(*step);
  const std::vector<char> all(saves, true);
  rows.push_back({.name = fmt::format("library, {} saves", saves),
                  .tensors = graph->tensors.size(),
                  .operators = graph->operators.size(),
                  .plan =
                      [step, limits] {
                        const auto choice = choose("swap", *step, limits);
                        return choice.foretold ? shown(*choice.foretold) : "fails";
                      },
                  .reference = [step, limits, all] { foretell(*step, all, limits); }});
  rows.push_back(rows.back());
  rows.back().name = fmt::format("library between two steps, {} saves", saves);
  rows.back().longest_ms = [step, limits] { return learn(*step, limits); };
}

void print(const std::vector<double>& values) {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  fmt::print(" {:>8.1f} {:>17}", sorted[sorted.size() / 2],
             fmt::format("({:.1f}-{:.1f})", sorted.front(), sorted.back()));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How long plans take."};
  int rounds = 5;
  size_t tensors = 5'000, skips = 2;
  std::string table, only, policy = "swap-quick";
  std::vector<std::string> logs;
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  app.add_option("--tensors", tensors)->check(CLI::Range(100, 100'000));
  app.add_option("--skips", skips, "earlier operators that one of `skipping` reads")
      ->check(CLI::Range(0, 100));
  app.add_option("--table", table)->check(CLI::ExistingFile);
  app.add_option("--only", only);
  app.add_option("--policy", policy)->check(CLI::IsMember({"swap-quick", "swap"}));
  app.add_option("logs", logs)->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);

  std::vector<Row> rows;
  for (auto graph : {chain(tensors / 2, 1), transformer(tensors), residual_net(tensors),
                     dense_net(tensors), long_lived(tensors), skipping(tensors / 2, skips, 1)})
    if (only.empty() || graph.name == only)
      add(rows, std::make_shared<Graph>(std::move(graph)), policy);
  for (const auto* net : {"gpt_350M/1", "gpt_1_3B/1", "resnet_500M/16"})
    if (auto graph = table.empty() ? std::nullopt : repeated(table, net, tensors))
      add(rows, std::make_shared<Graph>(std::move(*graph)), policy);
  for (const auto& log : logs)
    if (auto graph = read_dtr_log(log))
      add(rows, std::make_shared<Graph>(std::move(*graph)), policy);
  for (const size_t saves : {tensors / 3, tensors})
    if (only.empty()) add_library(rows, saves);

  for (int round = 0; round < rounds; ++round)
    for (auto& row : rows) {
      row.reference_ms.push_back(timed_ms(row.reference));
      if (row.longest_ms)
        row.plan_ms.push_back(row.longest_ms());
      else
        row.plan_ms.push_back(timed_ms([&] { row.found = row.plan(); }));
    }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return *std::max_element(a.plan_ms.begin(), a.plan_ms.end()) >
           *std::max_element(b.plan_ms.begin(), b.plan_ms.end());
  });
  fmt::print("{:44} {:>7} {:>9} {:>9} {:>8} {:>17} {:>8} {:>17}\n", "PLAN", "TENSORS", "OPERATORS",
             "OVERHEAD", "PLAN ms", "", "REPLAY", "");
  for (const auto& row : rows) {
    fmt::print("{:44} {:>7} {:>9} {:>9}", row.name, row.tensors, row.operators, row.found);
    print(row.plan_ms);
    print(row.reference_ms);
    fmt::print("\n");
  }
}
