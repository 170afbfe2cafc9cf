// Decision latency of the published network at batch 1, alone and beside a training thread, and its
// floor in the same run: reading every weight once from memory. Measurements are interleaved, so
// that a busy moment of the machine hits all of them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/histogram.h"
#include "coordinator/policy_host/training_thread.h"
#include "policies/learning/torch_thread.h"
#include "policies/published/published_policy.h"
#include "policies/published/trainer.h"
#include "tests/support/toy_cluster.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(2);

struct Timings {
  Histogram decision_ns;
  Histogram floor_ns;
};

uint64_t time_ns(const std::function<void()>& work) {
  const auto begin = SteadyClock::now();
  work();
  return static_cast<uint64_t>((SteadyClock::now() - begin) / std::chrono::nanoseconds(1));
}

// Decisions arrive now and then: both find the caches as the pause and other work have left them.
Timings measure(Policy& policy, const QNetwork& network, int rounds) {
  ToyCluster cluster({}, 1);
  Timings timings;
  float sink = 0;
  for (int i = 0; i < rounds; ++i) {
    const View view = cluster.arrive();
    size_t node = 0;
    std::this_thread::sleep_for(kPause);
    timings.decision_ns.add(time_ns([&] { node = policy.decide(view, observe(view)).node; }));
    cluster.place(node);
    std::this_thread::sleep_for(kPause);
    timings.floor_ns.add(time_ns([&] { sink += network.sum_weights(); }));
  }
  if (sink == 1) fmt::print(" ");  // keeps the sum from being optimised away
  return timings;
}

std::vector<PublishedExperience> some_experiences(size_t count) {
  ToyCluster cluster({}, 2);
  std::mt19937_64 generator(1);
  std::vector<PublishedExperience> experiences;
  auto seen = std::make_shared<const Observation>(observe(cluster.arrive()));
  for (size_t i = 0; i < count; ++i) {
    const auto action = static_cast<uint32_t>(generator() % 3);
    cluster.place(action);
    auto next = std::make_shared<const Observation>(observe(cluster.arrive()));
    experiences.push_back({seen, next, action, static_cast<double>(generator() % 1000) / 1e3});
    seen = next;
  }
  return experiences;
}

nlohmann::json to_json(const Histogram& histogram) {
  return {{"p50_us", static_cast<double>(histogram.quantile(0.5)) / 1e3},
          {"p99_us", static_cast<double>(histogram.quantile(0.99)) / 1e3}};
}

int run(int rounds, bool json) {
  use_one_torch_thread();
  PublishedSettings settings;
  settings.batches_per_experience = 1000;  // the trainer never runs out of work here
  auto trainer = std::make_unique<PublishedTrainer>(settings, 1);
  const auto weights = trainer->published();
  auto mailbox = std::make_shared<Mailbox<PublishedWeights>>();
  const auto policy = make_published_policy(settings, 1, mailbox);

  mailbox->put(weights);
  measure(*policy, weights->network, 20);  // warm up
  const Timings alone = measure(*policy, weights->network, rounds);

  TrainingThread training(std::move(trainer), 0, mailbox, settings.training_nice);
  training.add(some_experiences(settings.replay_capacity));
  while (training.counters().batches == 0) std::this_thread::yield();
  const uint64_t batches_before = training.counters().batches;
  const auto begin = SteadyClock::now();
  const Timings beside = measure(*policy, weights->network, rounds);
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  const auto batches = static_cast<double>(training.counters().batches - batches_before);

  const nlohmann::json report = {
      {"schema", 1},
      {"weights", weights->network.weight_count()},
      {"rounds", rounds},
      {"alone", {{"decision", to_json(alone.decision_ns)}, {"floor", to_json(alone.floor_ns)}}},
      {"training",
       {{"decision", to_json(beside.decision_ns)}, {"floor", to_json(beside.floor_ns)}}},
      {"training_batches_per_s", batches / seconds}};
  if (json) {
    fmt::print("{}\n", report.dump(2));
    return 0;
  }
  fmt::print("published network: {} weights, {} rounds\n{:26}{:>10}{:>10}\n",
             weights->network.weight_count(), rounds, "", "p50 us", "p99 us");
  for (const char* when : {"alone", "training"})
    for (const char* what : {"decision", "floor"}) {
      const auto& line = report[when][what];
      fmt::print("{:10}{:16}{:10.0f}{:10.0f}\n", when,
                 std::string(what) == "floor" ? "weights streamed" : what,
                 line["p50_us"].get<double>(), line["p99_us"].get<double>());
    }
  fmt::print("{:.1f} training batches of {} a second meanwhile\n", batches / seconds,
             settings.batch);
  return 0;
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  CLI::App app("Decision latency of the published S1 network beside its floor");
  bool quick = false;
  bool json = false;
  app.add_flag("--quick", quick, "200 rounds instead of 2,000");
  app.add_flag("--json", json, "Print JSON");
  CLI11_PARSE(app, argc, argv);
  return tierpilot::run(quick ? 200 : 2000, json);
}
