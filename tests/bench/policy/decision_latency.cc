// Decision latency at batch 1, one core. The dqn at 32 candidates, at 16 of which the task may also
// wait for 16 full nodes, and at 1,024; the published network beside its floor, reading every
// weight once from memory, and beside reading only those that a decision needs. All of it alone,
// beside a training thread as a coordinator has it, and beside one that trains without a pause.
// Measurements are interleaved, so that a busy moment of the machine hits all of them; the
// decisions of dqn-published and its floor are compared pair by pair.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "coordinator/policy_host/training_thread.h"
#include "policies/placement/dqn/dqn_policy.h"
#include "policies/placement/dqn/module.h"
#include "policies/placement/published/published_policy.h"
#include "policies/placement/published/trainer.h"
#include "tests/support/toy_cluster.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(1);

template <class Work>
double time_us(Work work) {
  const auto begin = SteadyClock::now();
  work();
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
}

double quantile(std::vector<double> values, double share) {
  const auto nth =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

// Views of a cluster that was kept busy for a while.
std::vector<View> views_of(uint32_t nodes) {
  ToyCluster cluster({.nodes = nodes, .offered_load = 0.4, .speed_spread = 1}, 1);
  std::mt19937_64 generator(1);
  std::vector<View> views;
  for (int i = 0; i < 96; ++i) {
    const View& view = cluster.arrive();
    if (i >= 64) views.push_back(view);
    cluster.place(generator() % nodes);
  }
  return views;
}

// Every other node is full, and the task may be kept back for one of them.
std::vector<View> half_full(std::vector<View> views) {
  for (View& view : views) {
    view.may_hold = true;
    for (size_t i = 0; i < view.nodes.size(); i += 2) {
      view.nodes[i].candidate = false;
      view.nodes[i].full = true;
    }
  }
  return views;
}

struct Timings {
  std::vector<double> few, half, many, published, floor, floor_read;
  std::vector<double> published_per_floor, published_per_floor_read;
};

class Bench {
 public:
  // A network that is still blank is not computed at all, so the weights must be trained ones.
  Bench(int rounds, const WeightsFile& file) : rounds_(rounds) {
    settings_.batches_per_experience = 1000;  // the trainer never runs out of work here
    auto dqn_weights = std::make_shared<Mailbox<DqnWeights>>();
    dqn_weights->put(std::make_shared<const DqnWeights>(file.weights));
    dqn_ = make_dqn_policy(settings_, 1, dqn_weights);
    published_ = PublishedTrainer({}, 1).published();
    auto published_weights = std::make_shared<Mailbox<PublishedWeights>>();
    published_weights->put(published_);
    dqn_published_ = make_published_policy({}, 1, published_weights);
    weights_ = std::make_shared<const WeightsFile>(file);
  }

  // Decisions arrive now and then: all find the caches as the pause and other work left them.
  Timings measure(int rounds) {
    Timings timings;
    float sink = 0;
    for (int i = 0; i < rounds; ++i) {
      const View& few = few_[static_cast<size_t>(i) % few_.size()];
      const View& many = many_[static_cast<size_t>(i) % many_.size()];
      std::this_thread::sleep_for(kPause);
      timings.few.push_back(time_us([&] { sink += decide(*dqn_, few); }));
      const View& half = half_[static_cast<size_t>(i) % half_.size()];
      std::this_thread::sleep_for(kPause);
      timings.half.push_back(time_us([&] { sink += decide(*dqn_, half); }));
      std::this_thread::sleep_for(kPause);
      timings.many.push_back(time_us([&] { sink += decide(*dqn_, many); }));
      std::this_thread::sleep_for(kPause);
      timings.published.push_back(time_us([&] { sink += decide(*dqn_published_, few); }));
      std::this_thread::sleep_for(kPause);
      timings.floor.push_back(time_us([&] { sink += published_->network.sum_weights(); }));
      std::this_thread::sleep_for(kPause);
      timings.floor_read.push_back(
          time_us([&] { sink += published_->network.sum_weights_read(); }));
      timings.published_per_floor.push_back(timings.published.back() / timings.floor.back());
      timings.published_per_floor_read.push_back(timings.published.back() /
                                                 timings.floor_read.back());
    }
    if (sink == 1) fmt::print(" ");  // keeps the sums from being optimised away
    return timings;
  }

  nlohmann::json run() {
    measure(20);  // warm up
    return {{"schema", 5},
            {"rounds", rounds_},
            {"published_weights", published_->network.weight_count()},
            {"alone", to_json(measure(rounds_))},
            {"training", beside_training(TrainingPace{}.cpu_share)},
            {"always training", beside_training(1)}};
  }

 private:
  nlohmann::json beside_training(double cpu_share) {
    std::vector<TrainingThread::NamedLearner> learners;
    auto learning = *dqn_module(settings_, weights_).learning->start(1, 16384);
    learners.push_back({"dqn", std::move(learning.learner), true});
    TrainingThread training(std::move(learners), {}, {.cpu_share = cpu_share},
                            VersionArchive({}, 0));
    for (uint64_t id = 0; id < 1024; ++id) {
      training.decided(id, std::make_shared<const View>(few_[id % few_.size()]), id % 32);
      training.told(id, Finished{0.1 + 0.001 * static_cast<double>(id)});
    }
    while (training.status("dqn").counters.batches == 0) std::this_thread::yield();
    const uint64_t before = training.status("dqn").counters.batches;
    const auto begin = SteadyClock::now();
    nlohmann::json beside = to_json(measure(rounds_));
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    const auto batches = static_cast<double>(training.status("dqn").counters.batches - before);
    beside["batches_per_s"] = batches / seconds;
    return beside;
  }

  static float decide(Policy& policy, const View& view) {
    return static_cast<float>(policy.decide(view).node);
  }

  static nlohmann::json quartiles(const std::vector<double>& values) {
    return {{"p25", quantile(values, 0.25)},
            {"p50", quantile(values, 0.5)},
            {"p75", quantile(values, 0.75)}};
  }

  static nlohmann::json to_json(const Timings& timings) {
    const auto figures = [](const std::vector<double>& us) {
      return nlohmann::json{{"p50_us", quantile(us, 0.5)}, {"p99_us", quantile(us, 0.99)}};
    };
    return {{"dqn, 32 candidates", figures(timings.few)},
            {"dqn, 16 and 16 full", figures(timings.half)},
            {"dqn, 1024 candidates", figures(timings.many)},
            {"dqn-published", figures(timings.published)},
            {"its weights streamed", figures(timings.floor)},
            {"those that it reads", figures(timings.floor_read)},
            {"published_per_floor", quartiles(timings.published_per_floor)},
            {"published_per_floor_read", quartiles(timings.published_per_floor_read)}};
  }

  int rounds_;
  DqnSettings settings_;
  std::shared_ptr<const WeightsFile> weights_;
  std::shared_ptr<const PublishedWeights> published_;
  std::unique_ptr<Policy> dqn_;
  std::unique_ptr<Policy> dqn_published_;
  std::vector<View> few_ = views_of(32);
  std::vector<View> half_ = half_full(few_);
  std::vector<View> many_ = views_of(1024);
};

void print(const nlohmann::json& report) {
  fmt::print("{:17}{:24}{:>10}{:>10}\n", "", "", "p50 us", "p99 us");
  for (const char* when : {"alone", "training", "always training"}) {
    for (const char* what : {"dqn, 32 candidates", "dqn, 16 and 16 full", "dqn, 1024 candidates",
                             "dqn-published", "its weights streamed", "those that it reads"}) {
      const auto& line = report[when][what];
      fmt::print("{:17}{:24}{:10.1f}{:10.1f}\n", when, what, line["p50_us"].get<double>(),
                 line["p99_us"].get<double>());
    }
    const auto print_ratio = [&](const char* name, const char* floor) {
      const auto& ratio = report[when][name];
      fmt::print(
          "{:17}dqn-published takes {:.2f} times as long as {}, by pairs ({:.2f} to {:.2f})\n",
          when, ratio["p50"].get<double>(), floor, ratio["p25"].get<double>(),
          ratio["p75"].get<double>());
    };
    print_ratio("published_per_floor", "streaming its weights");
    print_ratio("published_per_floor_read", "streaming those that it reads");
  }
  for (const char* when : {"training", "always training"})
    fmt::print("{:17}{:.0f} batches of the dqn a second\n", when,
               report[when]["batches_per_s"].get<double>());
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  CLI::App app("Decision latency of the dqn, and of the published network beside its floor");
  bool quick = false;
  bool json = false;
  app.add_flag("--quick", quick, "200 rounds instead of 2,000");
  app.add_flag("--json", json, "Print JSON");
  std::string weights_file;
  app.add_option("--weights", weights_file, "of the dqn")->required();
  CLI11_PARSE(app, argc, argv);
  const auto weights = tierpilot::load_weights(weights_file);
  if (!weights) {
    fmt::print(stderr, "error: {}\n", weights.error().message);
    return 1;
  }
  const auto report = tierpilot::Bench(quick ? 200 : 2000, *weights).run();
  if (json)
    fmt::print("{}\n", report.dump(2));
  else
    tierpilot::print(report);
  return 0;
}
