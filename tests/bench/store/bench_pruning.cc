// Durable submits, one after the other, while a coordinator forgets old tasks, and while it does
// not; in turn, in the same store.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/clock.h"
#include "base/histogram.h"
#include "tests/bench/run_main.h"
#include "tests/bench/store/old_tasks.h"
#include "tests/system/cluster.h"

namespace tierpilot::bench {
namespace {

double seconds_since(int64_t start_ns) {
  return static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9;
}

struct Arm {
  Histogram submit_ns;
  double forgotten_per_s = 0;  // in the last round
};

void measure(const std::filesystem::path& state_dir, int submits, bool prune, Arm& arm) {
  const auto before = ended_tasks(state_dir);
  double took_s = 0;
  {
    test::Cluster cluster(
        {.nodes = 0, .state_dir = state_dir, .keep_history_hours = prune ? 24 : 0});
    const int64_t start_ns = system_clock().boot_ns();
    for (int i = 0; i < submits; ++i) {
      const int64_t asked_ns = system_clock().boot_ns();
      if (auto answer = cluster.client().submit({test::shell_task("true")}); !answer)
        throw std::runtime_error(answer.error().message);
      arm.submit_ns.add(static_cast<uint64_t>(system_clock().boot_ns() - asked_ns));
    }
    took_s = seconds_since(start_ns);
  }
  const auto after = ended_tasks(state_dir);
  arm.forgotten_per_s = static_cast<double>(before - after) / took_s;
  if (prune && after < before / 100)
    throw std::runtime_error(
        "nothing was left to forget before the submits ended: take more tasks");
}

int run(int argc, char** argv) {
  CLI::App app("Submits beside the forgetting of old tasks");
  bool quick = false, as_json = false;
  int rounds = 5, submits = 2'000;
  uint64_t tasks = 1'000'000;
  std::string folder = "/var/tmp";
  app.add_flag("--quick", quick, "one short round, to see that it works");
  app.add_flag("-j,--json", as_json, "JSON on stdout");
  app.add_option("--rounds", rounds, "of both, in turn")->check(CLI::Range(1, 100));
  app.add_option("--submits", submits, "in each round of each")->check(CLI::Range(1, 1'000'000));
  app.add_option("--tasks", tasks, "old ones in the store, at the beginning");
  app.add_option("--folder", folder, "where the store is kept")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (quick) rounds = 1, submits = 50, tasks = 30'000;
  const test::TempFolder home(folder);
  test::program("TIERPILOT_TEST_COORDINATOR");  // to fail now, not when the store is written
  write_store(home.path() / "state", tasks, 0);
  Arm without, with;
  for (int round = 0; round < rounds; ++round) {
    measure(home.path() / "state", submits, false, without);
    measure(home.path() / "state", submits, true, with);
  }
  const auto ms = [](const Arm& arm, double q) { return arm.submit_ns.quantile(q) / 1e6; };
  const double times = ms(with, 0.99) / ms(without, 0.99);
  if (as_json)
    fmt::print("{}\n", nlohmann::ordered_json{{"schema", 1},
                                              {"tasks", tasks},
                                              {"without_p50_ms", ms(without, 0.5)},
                                              {"without_p99_ms", ms(without, 0.99)},
                                              {"with_p50_ms", ms(with, 0.5)},
                                              {"with_p99_ms", ms(with, 0.99)},
                                              {"p99_times", times},
                                              {"forgotten_per_s", with.forgotten_per_s}}
                           .dump(2));
  else
    fmt::print(
        "submit beside forgetting  p50 {:8.3f} ms  p99 {:8.3f} ms  {:.0f} tasks forgotten a "
        "second\nsubmit without            p50 {:8.3f} ms  p99 {:8.3f} ms\n"
        "p99 beside it is {:.2f} times that without; wanted: at most 2\n",
        ms(with, 0.5), ms(with, 0.99), with.forgotten_per_s, ms(without, 0.5), ms(without, 0.99),
        times);
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run_main(argc, argv, tierpilot::bench::run);
}
