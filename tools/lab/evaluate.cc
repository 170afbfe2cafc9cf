// tierctl policy evaluate: policies on a suite of workloads and clusters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "policies/sim/gang/fleet_record.h"
#include "policies/sim/gang/learned_placers.h"
#include "tools/lab/command.h"
#include "tools/lab/evaluation.h"
#include "tools/lab/gangs.h"
#include "tools/lab/plots.h"
#include "tools/lab/quality_suite.h"
#include "tools/lab/scene.h"
#include "tools/lab/sharing.h"
#include "tools/output/arguments.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

constexpr uint32_t kSceneSeeds = 10;  // of a workload that is no suite's
// Suites of where tasks run, and workloads.
constexpr const char* kPlacementSuites = "quick|short|full|wide";

struct Options {
  std::string suite = "quick";
  SceneNames scene;
  std::vector<std::string> policies = usual_policies(true);
  std::vector<std::string> plain;
  PolicyOptions policy;
  std::string plots;
  std::string curves;              // of the suite quality
  std::vector<std::string> cells;  // the same
  bool unguarded = false;
  bool holds_nothing = false;
  std::string order;
  GangOptions gangs;
  std::optional<uint32_t> readers;
  std::optional<uint32_t> seeds;
  uint64_t first_seed = 1001;
  std::optional<uint32_t> threads;
  std::string pods, nodes;
  bool in_time = false;
  bool policies_given = false;
  std::string trace;  // of the suites gangs and sharing
  std::optional<double> load;
  std::optional<uint32_t> jobs;
  // Options that only these suites have.
  std::vector<std::pair<const CLI::Option*, std::vector<std::string>>> owned;

  std::vector<std::string> given_policies() const {
    return policies_given ? policies : std::vector<std::string>();
  }
  uint32_t seeds_or_usual() const { return seeds.value_or(kSceneSeeds); }
};

CLI::Option* of_suites(std::vector<std::string> suites, Options& options, CLI::Option* option) {
  options.owned.emplace_back(option, std::move(suites));
  return option;
}

CLI::Option* of_suite(std::string suite, Options& options, CLI::Option* option) {
  return of_suites({std::move(suite)}, options, option);
}

struct Subject {
  sim::Suite suite;
  std::optional<sim::TraceSummary> trace;
};

Result<Subject> suite_named(const std::string& name) {
  auto suite = sim::make_suite(name);
  if (!suite)
    return fail(suite.error().code, fmt::format("{}, {}, {}, {}", suite.error().message, kGangSuite,
                                                kQualitySuite, kSharingSuite));
  return Subject{std::move(*suite), {}};
}

// Of one cell, with what an operator brings.
Result<Subject> suite_of(const SceneNames& names) {
  auto scene = open_scene(names);
  if (!scene) return tl::unexpected(scene.error());
  sim::EvaluationCell cell{.cluster = std::move(scene->cluster), .workload = {}, .source = {}};
  cell.workload.name = names.workload;
  cell.source = std::move(scene->source.make);
  return Subject{{.name = names.workload, .cells = {std::move(cell)}, .seeds = kSceneSeeds},
                 scene->source.summary};
}

Status check_plain(const Options& options) {
  const auto modules = placement_modules();
  for (const auto& name : options.plain)
    if (const auto* known = modules.find(name); known && known->learning)
      return fail(ErrorCode::kInvalid,
                  fmt::format("--plain: policy '{}' learns; only heuristics run plain", name));
  const auto opened = open_policies(options.plain, "--plain", options.policy);
  return opened ? Status() : tl::unexpected(opened.error());
}

int run_gangs(const Context& context, const Options& options) {
  auto gangs = options.gangs;
  gangs.seeds = options.seeds;
  gangs.first_seed = options.first_seed;
  gangs.threads = options.threads;
  gangs.weights = options.policy.weights;
  gangs.trace = options.trace;
  if (options.policies_given) gangs.policies = options.policies;
  return evaluate_gangs(context.output, gangs);
}

int run_sharing(const Context& context, const Options& options) {
  if (options.in_time)
    return evaluate_shares_in_time(context.output, {.policies = options.given_policies(),
                                                    .pods = options.pods,
                                                    .nodes = options.nodes,
                                                    .trace = options.trace,
                                                    .seeds = options.seeds_or_usual(),
                                                    .first_seed = options.first_seed,
                                                    .load = options.load,
                                                    .jobs = options.jobs});
  if (!options.trace.empty())
    return refuse(context.output,
                  {ErrorCode::kInvalid, "--trace tells times: with --suite sharing add --in-time"});
  return evaluate_sharing(context.output, {.policies = options.given_policies(),
                                           .pods = options.pods,
                                           .nodes = options.nodes,
                                           .seeds = options.seeds_or_usual(),
                                           .first_seed = options.first_seed});
}

int run_quality(const Context& context, const Options& options) {
  return run_quality_suite(context.output, {.curves = options.curves,
                                            .trace = options.trace,
                                            .cells = options.cells,
                                            .policies = options.given_policies(),
                                            .seeds = options.seeds_or_usual(),
                                            .first_seed = options.first_seed,
                                            .threads = options.threads});
}

// Where tasks run.
int run_placement(const Context& context, const Options& options) {
  if (auto status = check_plain(options); !status) return refuse(context.output, status.error());
  const auto policies = open_policies(options.policies, "--policies", options.policy);
  if (!policies) return refuse(context.output, policies.error());
  auto subject =
      options.scene.workload.empty() ? suite_named(options.suite) : suite_of(options.scene);
  if (!subject) return print_error(context.output, subject.error());
  if (auto status = open_plots(options.plots); !status)
    return print_error(context.output, status.error());
  sim::Suite& suite = subject->suite;
  if (options.seeds) suite.seeds = *options.seeds;
  for (auto& cell : suite.cells) {
    auto& coordinator = cell.cluster.coordinator;
    coordinator.hold_tasks = coordinator.hold_tasks && !options.holds_nothing;
    coordinator.service_order =
        service_order_from_name(options.order).value_or(coordinator.service_order);
    for (auto& group : cell.cluster.groups) group.readers = options.readers.value_or(group.readers);
  }
  const auto threads =
      policies->repeatable_in_threads(options.policies) ? options.threads : std::optional(1U);
  const auto evaluated = run_suite(std::move(suite), {options.policies, options.plain},
                                   policies->maker(), !options.unguarded, threads);
  if (!evaluated) return print_error(context.output, evaluated.error());
  if (!options.plots.empty())
    if (auto status = write_response_plots(*evaluated, options.plots); !status)
      return print_error(context.output, status.error());
  auto value = evaluated_json(*evaluated);
  if (subject->trace) value["trace"] = trace_json(*subject->trace);
  value["learned_during_runs"] = policies->learning;
  if (const auto weights = policies->weights(options.policies))
    value["weights"] = {{"version", weights->version},
                        {"command", weights->provenance.command},
                        {"config_digest", weights->provenance.config_digest}};
  return show_evaluation(context.output, std::move(value));
}

// Suites of other decisions than where a task runs.
struct OtherSuite {
  std::string_view name;
  int (*run)(const Context&, const Options&);
};
constexpr OtherSuite kOtherSuites[] = {
    {kGangSuite, run_gangs}, {kQualitySuite, run_quality}, {kSharingSuite, run_sharing}};

int run(const Context& context, const Options& options) {
  const auto suite = options.scene.workload.empty() ? options.suite : std::string();
  const bool is_other = std::any_of(std::begin(kOtherSuites), std::end(kOtherSuites),
                                    [&](const auto& other) { return other.name == suite; });
  const auto owner = is_other ? suite : kPlacementSuites;
  for (const auto& [option, owners] : options.owned)
    if (option->count() > 0 && std::count(owners.begin(), owners.end(), owner) == 0)
      return refuse(context.output,
                    {ErrorCode::kInvalid, fmt::format("{} is for --suite {}", option->get_name(),
                                                      fmt::join(owners, " and --suite "))});
  for (const auto& [names, option] :
       {std::pair(options.policies, "--policies"), std::pair(options.cells, "--cells")})
    if (auto once = each_once(names, option); !once) return refuse(context.output, once.error());
  for (const auto& other : kOtherSuites)
    if (other.name == suite) return other.run(context, options);
  return run_placement(context, options);
}

void add_quality_options(CLI::App& command, Options& options) {
  of_suite(kQualitySuite, options,
           command.add_option("--curves", options.curves,
                              "quality: recorded loss curves, as 'quality predict' takes them "
                              "(default: seeded ones of seven families)"))
      ->type_name("FILE");
  of_suite(
      kQualitySuite, options,
      command.add_option("--cells", options.cells, "quality: only these settings (default: all)"))
      ->delimiter(',')
      ->type_name("NAME,...");
}

void add_in_time_options(CLI::App& command, Options& options) {
  auto* in_time = command.get_option("--in-time");
  of_suite(kSharingSuite, options,
           command.add_option("--load", options.load,
                              "with --in-time: units that jobs need of those that there are "
                              "(default: 0.6 with jobs of traces, else 0.9)"))
      ->check(number_between(0.001, 10.0))
      ->type_name("PART")
      ->needs(in_time);
  of_suite(kSharingSuite, options,
           command.add_option("--jobs", options.jobs,
                              "with --in-time: so many, drawn from a trace with each seed "
                              "(default: 6500 of a trace, else 600)"))
      ->check(CLI::Range(1U, 1'000'000U))
      ->type_name("N")
      ->needs(in_time);
}

// Lists of pods and nodes, and who gets which share of which GPU.
void add_sharing_options(CLI::App& command, Options& options) {
  auto* pods = of_suite(kSharingSuite, options,
                        command.add_option("--pods", options.pods,
                                           "with --suite sharing: a list as "
                                           "openb_pod_list_default.csv (default: generated ones)"))
                   ->type_name("FILE");
  auto* nodes = of_suite(kSharingSuite, options,
                         command.add_option("--nodes", options.nodes, "and its nodes"))
                    ->type_name("FILE")
                    ->needs(pods);
  pods->needs(nodes);
  of_suite(kSharingSuite, options,
           command.add_flag("--in-time", options.in_time,
                            "with --suite sharing: jobs that arrive, with promises, in place of "
                            "full load: those of --pods and --trace (default: drawn ones)"));
  add_in_time_options(command, options);
}

// How ac-published learns in the suite gangs.
void add_published_options(CLI::App& command, Options& options) {
  auto& gangs = options.gangs;
  of_suite(kGangSuite, options,
           command.add_option("--workloads", gangs.workloads,
                              "that ac-published learns from for each row and seed of the suite "
                              "gangs"))
      ->check(CLI::Range(0U, 1'000'000U))
      ->type_name("N")
      ->capture_default_str();
  of_suite(kGangSuite, options,
           command.add_option("--random-placements", gangs.published.random_placements,
                              "ac-published is rewarded against the best of so many"))
      ->check(CLI::Range(1U, 100'000U))
      ->type_name("N")
      ->capture_default_str();
  of_suite(
      kGangSuite, options,
      command.add_flag_callback(
          "--all-steps", [&gangs] { gangs.published.batch = gang::PublishedSettings::Batch::kAll; },
          "ac-published trains on all the steps that it keeps, not on as many as a workload "
          "brought"));
}

void add_gang_options(CLI::App& command, Options& options) {
  of_suites({kGangSuite, kQualitySuite, kSharingSuite}, options,
            command.add_option("--first-seed", options.first_seed,
                               "of the runs of the suites gangs, quality and sharing: what is "
                               "published has those from 1001 on, settings were chosen on others"))
      ->check(CLI::Range(1, 1'000'000'000))
      ->type_name("N")
      ->capture_default_str();
  of_suites({kGangSuite, kSharingSuite, kQualitySuite}, options,
            command.add_option("--trace", options.trace,
                               "jobs from a trace like Philly's (of the suite quality their "
                               "arrivals, at its own mean gap): of the suite gangs its second "
                               "half, of --suite sharing --in-time all (default: made up)"))
      ->type_name("FILE");
  of_suite(kGangSuite, options,
           command.add_option("--record", options.gangs.record,
                              "faults of a real fleet, as 'unit rates --history' takes them: its "
                              "second half is replayed with what was known then"))
      ->type_name("FILE");
  of_suite(kGangSuite, options,
           command.add_option("--record-nodes", options.gangs.record_nodes,
                              "nodes there are, where the record names only those that failed "
                              "(default: 400, or as many as it names)"))
      ->check(CLI::Range(2U, gang::kMaxRecordNodes))
      ->type_name("N")
      ->needs("--record");
  of_suite(kGangSuite, options,
           command.add_option("--max-gpus", options.gangs.max_units,
                              "the largest cluster of the suite gangs"))
      ->check(CLI::Range(16U, 1024U))
      ->type_name("N")
      ->excludes("--record")
      ->capture_default_str();
  of_suite(kGangSuite, options,
           command.add_option("--repair-h", options.gangs.repair_h,
                              "hours that a GPU is out after it failed, in the suite gangs"))
      ->check(number_between(0.0, 1e4))
      ->type_name("HOURS")
      ->capture_default_str();
  of_suite(kGangSuite, options,
           command.add_option("--restart-h", options.gangs.restart_h,
                              "hours that a job needs to begin again, in the suite gangs"))
      ->check(number_between(0.0, 1e4))
      ->type_name("HOURS")
      ->capture_default_str();
  of_suite(
      kGangSuite, options,
      command.add_option("--compare-training", options.gangs.compared,
                         "ways to train ac, or ac-published, on a few rows where rates differ"))
      ->check(CLI::IsMember({gang::kAc, gang::kAcPublished}))
      ->excludes("--record")
      ->excludes("--trace");
  add_published_options(command, options);
}

// Of the rules that serve every policy there.
void add_placement_options(CLI::App& command, Options& options) {
  const auto of_placement = [&](CLI::Option* option) {
    return of_suite(kPlacementSuites, options, option);
  };
  of_placement(command.add_option(
                   "--plain", options.plain,
                   "heuristics that also run without the rules that serve every policy here: tasks "
                   "in the order of arrival, none kept back, any number of readers"))
      ->delimiter(',')
      ->type_name("NAME,...");
  of_placement(command.add_flag("--no-guard", options.unguarded,
                                "policies that learn decide without a control share, and are "
                                "never deposed"));
  of_placement(command.add_flag("--no-hold", options.holds_nothing,
                                "no policy may keep a task back for a full node"));
  of_placement(
      command.add_option("--order", options.order,
                         "in which waiting tasks are served: shortest or arrival (default: the "
                         "cluster's; shortest)"))
      ->check(CLI::IsMember({"shortest", "arrival"}))
      ->type_name("NAME");
  of_placement(command.add_option("--readers", options.readers,
                                  "nodes that read from one at a time (default: the cluster's; 2)"))
      ->check(CLI::Range(1U, 1'000'000U))
      ->type_name("N");
  of_placement(
      command.add_option("--plots", options.plots, "write distributions of response times as SVG"))
      ->type_name("FOLDER");
}

}  // namespace

void add_evaluate(CLI::App& policy, Context& context) {
  auto* command = policy.add_subcommand("evaluate", laboratory_help::kPolicyEvaluate);
  auto options = std::make_shared<Options>();
  auto* suite = command->add_option("--suite", options->suite, "what the policies are compared on")
                    ->type_name("quick|short|full|wide|quality|gangs|sharing")
                    ->capture_default_str();
  add_scene_options(*command, options->scene)->excludes(suite);
  auto* policies = command->add_option("--policies", options->policies, "policies to compare");
  policies->delimiter(',')->type_name("NAME,...")->capture_default_str();
  add_placement_options(*command, *options);
  command->add_option("--seeds", options->seeds, "runs of each (default: as the suite has; 10)")
      ->check(CLI::Range(1U, 10'000U))
      ->type_name("N");
  add_gang_options(*command, *options);
  add_policy_options(*command, options->policy);
  of_suites({kPlacementSuites, kGangSuite}, *options, command->get_option("--weights"));
  for (const char* name : {"--learn", "--learning"})
    of_suite(kPlacementSuites, *options, command->get_option(name));
  of_suites(
      {kPlacementSuites, kGangSuite, kQualitySuite}, *options,
      command->add_option("--threads", options->threads, "(default: as many as there are CPUs)"))
      ->check(CLI::Range(1U, 1024U))
      ->type_name("N");
  add_quality_options(*command, *options);
  add_sharing_options(*command, *options);
  command->callback([&context, options, policies] {
    options->policies_given = policies->count() > 0;
    context.command = [&context, options] { return run(context, *options); };
  });
}

}  // namespace tierpilot::lab
