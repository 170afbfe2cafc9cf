// tierctl policy evaluate --suite sharing --in-time.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "policies/sim/sharing/time_report.h"
#include "tools/lab/policies.h"
#include "tools/lab/progress_bar.h"
#include "tools/lab/sharing.h"

namespace tierpilot::lab {
namespace {

const std::vector<Column> kInTime{
    {"POLICY", "/policy"},
    {"KEPT OF MADE", "/promises_kept_of_made", Format::kPercent},
    {"WORST SEED", "/promises_kept_of_made_least", Format::kPercent},
    {"MADE", "/promises_made", Format::kPercent},
    {"KEPT OF ALL", "/promises_kept_of_asked", Format::kPercent},
    {"BEST EFFORT UNITS", "/best_effort_throughput_units", Format::kNumber},
    {"DONE AFTER s", "/best_effort_completion_s", Format::kNumber},
    {"USED", "/used", Format::kPercent},
    {"GIVEN", "/given", Format::kPercent},
    {"PREEMPTIONS", "/preemptions", Format::kNumber},
    {"LOST s", "/lost_s", Format::kNumber},
    {"SLOWED", "/slowed_by_neighbours", Format::kPercent}};

}  // namespace

int evaluate_shares_in_time(const Output& output, std::vector<std::string> policies,
                            uint32_t seeds) {
  sharing::TimedSuite suite;
  suite.policies = std::move(policies);
  suite.seeds = seeds;
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  suite.progress = [&](double share) { bar.show(share); };
  const auto value = sharing::run_timed_suite(suite);
  bar.clear();
  if (!value) return refuse(output, value.error());
  return print(output, {{"suite", kSharingSuite}, {"in_time", *value}},
               {{.title = "Shares in time, means over seeds, the fewest promises kept first",
                 .rows = "/in_time/policies",
                 .columns = kInTime}});
}

}  // namespace tierpilot::lab
