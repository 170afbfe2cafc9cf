// Figures of a cluster do not become more with its nodes, tasks and users.
#include "coordinator/service/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace tierpilot {
namespace {

class NoLink final : public NodeLink {
 public:
  void start(const Assignment&, Started) override {}
  void cancel(AttemptId, const std::string&) override {}
  void create_dataset(const std::string&, const DatasetSource&,
                      std::function<void(Result<DatasetVersion>)>) override {}
  void drop_dataset(const std::string&, uint64_t) override {}
  void discard_version(const DatasetVersion&) override {}
  void set_home(const DatasetVersion&, bool) override {}
  void keep_dataset(const DatasetNeed&, std::function<void(Status)>) override {}
  void verify_dataset(const DatasetVersion&, std::function<void(Result<CopyCheck>)>) override {}
  void set_share(AttemptId, uint32_t, Shared) override {}
  void tell_job(AttemptId, const JobAdvice&) override {}
  void release(AttemptId) override {}
};

// Lines that are no comments.
ptrdiff_t series_with(int nodes) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("tierpilot-metrics-" + std::to_string(::getpid()));
  std::filesystem::remove_all(directory);
  ptrdiff_t series = 0;
  {
    ManualClock clock;
    auto store = Store::open(
        directory, [](auto) {}, Store::Commits::kByCaller);
    auto host = PolicyHost::start({.state_dir = {}, .active = "least-loaded"});
    if (!store || !host) throw std::runtime_error("no store, or no policies");
    Core core({}, clock, **store, **host, {[](auto) {}, [](int64_t, auto) {}});
    if (auto begun = core.begin({}, 0); !begun) throw std::runtime_error(begun.error().message);
    for (int i = 0; i < nodes; ++i) {
      NodeFacts facts;
      facts.name = "n" + std::to_string(i);
      facts.units = 4;
      facts.data_address = "unix:/" + facts.name;
      if (!core.membership.join(facts, std::make_shared<NoLink>(), {}, {}))
        throw std::runtime_error("a node cannot join");
      core.intake.submit("user " + facts.name, "r" + facts.name, {}, [](auto) {});
      core.state.catalog.put({.name = "d" + facts.name, .bytes = 1, .home = facts.name});
    }
    const auto page = coordinator_metrics(core, 0);
    for (size_t at = 0; at < page.size(); at = page.find('\n', at) + 1) series += page[at] != '#';
  }
  std::filesystem::remove_all(directory);
  return series;
}

TEST(CoordinatorMetrics, AThousandNodesHaveAsManySeriesAsOne) {
  const auto of_one = series_with(1);
  EXPECT_GT(of_one, 50);
  EXPECT_EQ(series_with(1'000), of_one);
}

}  // namespace
}  // namespace tierpilot
