// How long a coordinator takes from its start until it answers, with many tasks in its store.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "base/clock.h"
#include "tests/bench/run_main.h"
#include "tests/bench/store/old_tasks.h"
#include "tests/system/cluster.h"

namespace tierpilot::bench {
namespace {

int run(int argc, char** argv) {
  CLI::App app("From the start of a coordinator to its first answer");
  uint64_t ended = 1'000'000, waiting = 100'000;
  int starts = 3;
  std::string folder = "/var/tmp";
  bool quick = false;
  app.add_flag("--quick", quick, "a small store, to see that it works");
  app.add_option("--ended", ended, "tasks that have ended");
  app.add_option("--waiting", waiting, "tasks that wait for others, 10,000 to a submit");
  app.add_option("--starts", starts, "each after a kill")->check(CLI::Range(1, 100));
  app.add_option("--folder", folder, "where the store is kept")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (quick) ended = 1'000, waiting = 20'000, starts = 1;
  const test::TempFolder home(folder);
  write_store(home.path() / "state", ended, waiting);
  test::Cluster cluster({.nodes = 0, .state_dir = home.path() / "state"});
  for (int start = 0; start < starts; ++start) {
    cluster.coordinator().kill_now();
    const int64_t from_ns = system_clock().boot_ns();
    cluster.start_coordinator();
    if (auto answer = cluster.client().submit({test::shell_task("true")}); !answer)
      throw std::runtime_error(answer.error().message);
    fmt::print("{} ended and {} waiting tasks: takes a task {:.2f} s after its start\n", ended,
               waiting, static_cast<double>(system_clock().boot_ns() - from_ns) / 1e9);
  }
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run_main(argc, argv, tierpilot::bench::run);
}
