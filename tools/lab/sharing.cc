#include "tools/lab/sharing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policies/sim/sharing/full_load/full_load.h"
#include "policies/sim/sharing/full_load/full_load_report.h"
#include "tools/lab/policies.h"
#include "tools/lab/progress_bar.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

constexpr uint32_t kGeneratedNodes = 300;
constexpr uint32_t kGeneratedPods = 2000;
constexpr uint64_t kGeneratedSeed = 1001;

const std::vector<Column> kFullLoad{{"POLICY", "/policy"},
                                    {"ALLOCATED", "/allocation", Format::kPercent},
                                    {"WORST SEED", "/allocation_least", Format::kPercent},
                                    {"AT CAPACITY", "/allocation_at_capacity", Format::kPercent},
                                    {"GIVEN", "/given", Format::kPercent},
                                    {"FRAGMENTED", "/fragmentation", Format::kPercent},
                                    {"PODS LEFT OUT", "/left_out", Format::kNumber}};

const std::vector<Column> kBound{
    {"POLICY", "/policy"},
    {"ALLOCATED AT MOST", "/allocation", Format::kPercent},
    {"WORST SEED", "/allocation_least", Format::kPercent},
    {"AT CAPACITY AT MOST", "/allocation_at_capacity", Format::kPercent}};

Result<sharing::PodTrace> open_trace(const SharingOptions& options) {
  if (options.pods.empty())
    return sharing::generate_pods(kGeneratedSeed, kGeneratedNodes, kGeneratedPods);
  return sharing::read_pods(options.pods, options.nodes);
}

// Of pods that want units, those that no node has room for though it is idle.
uint64_t pods_without_node(const sharing::PodTrace& trace) {
  uint64_t count = 0;
  for (const auto& pod : trace.pods)
    count += pod.request.units > 0 &&
             std::none_of(trace.nodes.begin(), trace.nodes.end(), [&](const sharing::Node& node) {
               return sharing::fits(node, pod.request);
             });
  return count;
}

ordered_json pods_json(const sharing::PodTrace& trace, const SharingOptions& options) {
  uint64_t units = 0;
  for (const auto& node : trace.nodes) units += node.units.size();
  ordered_json value;
  if (!options.pods.empty()) {
    value["pods_file"] = options.pods;
    value["nodes_file"] = options.nodes;
  }
  value["generated"] = options.pods.empty();
  value["nodes"] = trace.nodes.size();
  value["units"] = units;
  value["pods"] = trace.pods.size();
  value["pods_without_node"] = pods_without_node(trace);
  value["skipped"] = trace.skipped;
  if (!trace.first_skipped.empty()) value["first_skipped"] = trace.first_skipped;
  return value;
}

}  // namespace

int evaluate_sharing(const Output& output, SharingOptions options) {
  if (options.policies.empty()) options.policies = sharing::full_load_policies();
  if (auto known = sharing::check_full_load_policies(options.policies); !known)
    return refuse(output, known.error());
  const auto trace = open_trace(options);
  if (!trace) return print_error(output, trace.error());
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  sharing::FullLoadOptions full_load{
      .policies = options.policies, .seeds = options.seeds, .first_seed = options.first_seed};
  full_load.progress = [&](double share) { bar.show(share); };
  const auto load = sharing::run_full_load(*trace, full_load);
  bar.clear();
  if (!load) return print_error(output, load.error());
  const ordered_json value{{"suite", kSharingSuite},
                           {"trace", pods_json(*trace, options)},
                           {"full_load", sharing::full_load_json(*load)}};
  std::vector<std::string> warnings;
  if (const auto count = value["trace"]["pods_without_node"].get<uint64_t>(); count > 0)
    warnings.push_back(fmt::format(
        "{} of {} pods fit on no node, even while all are idle: their model, cores or memory are "
        "more than any has",
        count, trace->pods.size()));
  if (!trace->first_skipped.empty())
    warnings.push_back(fmt::format("rows were skipped: {}", trace->first_skipped));
  return print(output, value,
               {{.title = "Allocation of units at full load, means over seeds, the worst first",
                 .rows = "/full_load/policies",
                 .columns = kFullLoad},
                {.title = "What no policy allocates more than, means over seeds",
                 .rows = "/full_load/bounds",
                 .columns = kBound}},
               warnings);
}

}  // namespace tierpilot::lab
