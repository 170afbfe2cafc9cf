// tierpilot-trainer: trains a small net on data that it draws itself, alone or as a rank of a gang.
// What a training job in C++ looks like, and what demonstrations and tests run as one.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "tools/output/arguments.h"
#include "tools/trainer/swap_budget.h"
#include "tools/trainer/training.h"

namespace tierpilot::trainer {
namespace {

constexpr int kExitStopped = 128 + SIGTERM;
constexpr std::chrono::seconds kMeetWithin{120};

volatile sig_atomic_t signalled = 0;

struct Options {
  std::string model = "mlp";
  TrainingPlan plan;
  int64_t pace_ms = 0;
  double save_every_s = 0;
  std::string state_file = "state";
  std::string resume_file;
  std::string swap_budget;
  bool swap_recompute = false;
  bool losses = false;
};

TrainingPlan plan_of(const Options& options) {
  auto plan = options.plan;
  const auto name = std::find(kModelNames.begin(), kModelNames.end(), options.model);
  plan.problem.model = static_cast<ModelKind>(name - kModelNames.begin());
  plan.pace = std::chrono::milliseconds(options.pace_ms);
  plan.state_file = options.state_file;
  if (options.save_every_s > 0)
    plan.save_every = std::chrono::milliseconds(std::lround(options.save_every_s * 1e3));
  return plan;
}

void stop_at_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
}

void print_end(const Output& output, const TrainingPlan& plan, const TrainingEnd& end,
               const SwapBudget& budget) {
  if (output.json) {
    nlohmann::ordered_json value{{"schema", 1},
                                 {"began_at", end.began_at},
                                 {"iteration", end.step},
                                 {"iterations", plan.steps},
                                 {"loss", end.loss},
                                 {"stopped", nullptr},
                                 {"swap", parse_json<nlohmann::ordered_json>(budget.statistics())}};
    if (end.stopped) value["stopped"] = *end.stopped;
    *output.out << value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (end.stopped) {
    *output.out << fmt::format("stopped at iteration {}: {}\n", end.step, *end.stopped);
  } else {
    *output.out << fmt::format("loss {}\n", end.loss);
  }
  output.out->flush();
}

// Since 1970, iteration, loss, CPU seconds until then.
void print_step(std::ostream& out, uint64_t step, float loss) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  out << fmt::format("{:.3f} {} {:.9g} {:.3f}\n", now.count(), step, loss,
                     static_cast<double>(std::clock()) / CLOCKS_PER_SEC)
      << std::flush;
}

Result<int> run(const Output& output, const Options& options) {
  const auto plan = plan_of(options);
  if (plan.problem.batch > plan.problem.samples)
    return fail(ErrorCode::kInvalid,
                fmt::format("--batch {} is more than the {} samples: give more --samples",
                            plan.problem.batch, plan.problem.samples));
  if (options.losses && output.json)
    return fail(ErrorCode::kInvalid, "--losses prints lines that are no JSON: leave out -j");
  const auto budget = SwapBudget::of(options.swap_budget, options.swap_recompute);
  if (!budget) return tl::unexpected(budget.error());
  const auto place = place_of([](const char* name) { return std::getenv(name); });
  if (!place) return tl::unexpected(place.error());
  auto& job = Job::of_process();
  auto group = Group::meet(*place, kMeetWithin);
  if (!group) return tl::unexpected(group.error());
  stop_at_signals();  // before it has met the others a signal just ends it
  const auto interrupted = [] {
    return signalled ? std::optional<std::string>("told so by a signal") : std::nullopt;
  };
  const bool speaks = place->rank == 0;
  const auto stepped = [&](uint64_t step, float loss) {
    if (speaks && options.losses) print_step(*output.out, step, loss);
  };
  Training training(
      plan, *group, job, interrupted, [&budget] { return budget->measures(); }, stepped);
  const auto file = options.resume_file.empty() ? job.restored() : options.resume_file;
  if (!file.empty())
    if (auto status = training.resume(file); !status) return tl::unexpected(status.error());
  if (speaks && !output.json)
    *output.out << fmt::format("begins at iteration {} of {}\n", training.step(), plan.steps)
                << std::flush;
  const auto end = training.run();
  if (!end) return tl::unexpected(end.error());
  if (speaks) print_end(output, plan, *end, *budget);
  return end->stopped ? kExitStopped : int{kExitOk};
}

void add_options(CLI::App& app, Options& options) {
  auto& problem = options.plan.problem;
  app.add_option("model", options.model,
                 "mlp, conv (a small convolutional net), logistic or residual (a deep one)")
      ->required()
      ->check(CLI::IsMember(kModelNames).description(""))
      ->type_name("MODEL");
  app.add_option("--steps", options.plan.steps, "iterations in all")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}).description(""))
      ->capture_default_str();
  app.add_option("--seed", problem.seed, "of data, first weights and batches")
      ->check(whole_number().description(""))
      ->capture_default_str();
  app.add_option("--samples", problem.samples, "that are drawn")
      ->check(CLI::Range(1u, 1'000'000u).description(""))
      ->capture_default_str();
  app.add_option("--batch", problem.batch, "samples of a step, of all ranks together")
      ->check(CLI::Range(1u, 1'000'000u).description(""))
      ->capture_default_str();
  app.add_option("--rate", options.plan.rate, "of learning")
      ->check(number_between(1e-9, 100.0).description(""))
      ->capture_default_str();
  auto* const budget =
      app.add_option("--swap-budget", options.swap_budget,
                     "keep the process's private memory within it: what waits for the backward "
                     "pass leaves for slower memory meanwhile, with the same result")
          ->type_name("SIZE");
  app.add_flag("--swap-recompute", options.swap_recompute,
               "blocks of the residual net may be computed again in the backward pass instead, "
               "where that is faster")
      ->needs(budget);
  app.add_flag("--losses", options.losses,
               "print a line for each iteration: seconds since 1970, its number, its loss, and the "
               "CPU seconds until then");
  app.add_option("--step-ms", options.pace_ms, "a step takes this long at least")
      ->check(CLI::Range(int64_t{0}, int64_t{60'000}).description(""))
      ->capture_default_str();
  app.add_option("--state", options.state_file, "where rank 0 saves")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--save-every-s", options.save_every_s,
                 "save so often, beside when Tierpilot asks for it and at the end")
      ->check(number_between(0.1, 1e6).description(""))
      ->type_name("SECONDS");
  app.add_option("--resume", options.resume_file,
                 "go on from this saved state; else from the one in TIERPILOT_CHECKPOINT, if any")
      ->type_name("FILE");
}

}  // namespace
}  // namespace tierpilot::trainer

int main(int argc, char** argv) {
  using namespace tierpilot;
  Output output;
  trainer::Options options;
  CLI::App app{
      "Trains a small net on data that it draws by a seed: alone, or as one rank of several by\n"
      "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Under Tierpilot it reports its progress and\n"
      "saves when it is asked to. Equal seeds give equal losses, also after failures.",
      "tierpilot-trainer"};
  trainer::add_options(app, options);
  if (const auto code = parse_arguments(app, argc, argv, output)) return *code;
  const auto code = trainer::run(output, options);
  return code ? *code : print_error(output, code.error());
}
