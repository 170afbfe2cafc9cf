// tierctl task submit: one command, or several from a file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/memory_wish.h"
#include "rpc/task_wire.h"
#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/submission/elastic_words.h"
#include "tools/tierctl/submission/share_words.h"
#include "tools/tierctl/submission/submission_file.h"
#include "tools/tierctl/task_wait.h"

namespace tierpilot::tierctl {
namespace {

struct Arguments {
  TaskSpec task;
  ElasticWords elastic;
  GangWords gang;
  ShareWords share;
  std::vector<std::string> datasets, env;
  std::string file, request_id;
  bool wait = false;
};

Result<std::vector<TaskSpec>> tasks_of(const Arguments& arguments) {
  if (!arguments.file.empty()) return load_submission(arguments.file);
  TaskSpec task = arguments.task;
  for (const auto& text : arguments.datasets) {
    auto use = parse_dataset_use(text);
    if (!use) return tl::unexpected(use.error());
    task.datasets.push_back(*use);
  }
  for (const auto& text : arguments.env) {
    const size_t equals = text.find('=');
    task.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return std::vector{task};
}

// What a task may ask for that an older coordinator cannot do.
struct Wish {
  std::string_view feature;
  std::function<bool(const TaskSpec&)> is_asked;
  std::string_view cannot;  // behind the coordinator's name
};

const std::vector<Wish> kWishes{
    {kElasticFeature, &TaskSpec::is_elastic, "would never change the units of an elastic task"},
    {kQualityFeature, [](const TaskSpec& task) { return task.training_goal != TrainingGoal{}; },
     "knows no weights, measures and goals of elastic tasks"},
    {kShareFeature, &TaskSpec::is_shared, "gives no shares of units"},
    {kGpuShareFeature, &TaskSpec::has_gpu_share, "gives no shares of GPUs"},
    {kSwapRoomFeature, [](const TaskSpec& task) { return task.swap_room_bytes > 0; },
     "gives no room for swapping"},
    // It would see a single process in it.
    {kGangFeature, &TaskSpec::is_gang, "runs no tasks with ranks"},
};

Status check_features(const ProgramVersion& coordinator, const std::vector<TaskSpec>& tasks) {
  for (const auto& wish : kWishes)
    if (std::any_of(tasks.begin(), tasks.end(), wish.is_asked) && !coordinator.can(wish.feature))
      return fail(ErrorCode::kUnavailable,
                  fmt::format("{} {}: update it", coordinator.label(), wish.cannot));
  return {};
}

Result<int> submit(Context& context, ClusterConnection& connection, const Arguments& arguments,
                   const std::vector<TaskSpec>& tasks) {
  const std::string request_id =
      arguments.request_id.empty() ? draw_request_id() : arguments.request_id;
  if (auto able = check_features(connection.coordinator(), tasks); !able)
    return tl::unexpected(able.error());
  auto request = connection.cluster().submitRequest();
  request.setRequestId(request_id);
  auto specs = request.initTasks(static_cast<uint32_t>(tasks.size()));
  for (uint32_t i = 0; i < specs.size(); ++i) write_spec(tasks[i], specs[i]);
  constexpr uint64_t kMostBytes =
      4'000'000;  // of a message, which has 4 MiB with what is around it
  if (const uint64_t bytes = request.asReader().totalSize().wordCount * sizeof(capnp::word);
      bytes > kMostBytes)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("{} tasks take {} in one message, and {} are the most: divide them into "
                    "several submissions",
                    tasks.size(), format_bytes(bytes), format_bytes(kMostBytes)));
  auto answer = connection.call(kj::mv(request));
  if (!answer) {
    auto error = answer.error();
    if (error.code == ErrorCode::kUnreachable || error.code == ErrorCode::kTimeout)
      error.message += fmt::format(
          "; the tasks may have been taken all the same: repeat with --request-id {}", request_id);
    return tl::unexpected(error);
  }
  std::vector<uint64_t> ids;
  for (const uint64_t id : answer->getTasks()) ids.push_back(id);
  if (arguments.wait) {
    auto waited = wait_for_tasks(context, connection, ids, -1);
    if (!waited)  // whoever repeats the whole command would have all of it run twice
      waited.error().message += fmt::format(
          "; submission {} (request {}) was taken and goes on: wait on with tierctl task wait {}",
          answer->getSubmission(), request_id, fmt::join(ids, " "));
    return waited;
  }
  auto rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < ids.size() && i < tasks.size(); ++i)
    rows.push_back({{"id", ids[i]}, {"name", tasks[i].name}});
  return print(
      context.output,
      {{"submission", answer->getSubmission()}, {"request_id", request_id}, {"tasks", rows}},
      {{.title = fmt::format("submission {}", answer->getSubmission()),
        .rows = "/tasks",
        .columns = {{"ID", "/id"}, {"NAME", "/name"}}}});
}

void add_gang_options(CLI::App& sub, GangSpec& gang, GangWords& words) {
  gang.max_restarts = kUsualRestarts;
  auto* ranks =
      sub.add_option("--ranks", gang.ranks, "so many processes that are placed and end together")
          ->check(CLI::Range(1u, kMostRanks));
  sub.add_option("--max-ranks", gang.max_ranks,
                 "it may begin again, from a checkpoint, with up to so many, where its loss is "
                 "foretold to gain by that")
      ->check(CLI::Range(1u, kMostRanks));
  sub.add_option("--engine", words.engine,
                 "what ranks compute on, or a share is of: cpu (default) or gpu")
      ->check(CLI::IsMember({"cpu", "gpu"}));
  sub.add_option("--units-per-rank", words.units_per_rank,
                 "of the engine (default 1); with gpu, --units are the CPU units besides")
      ->check(CLI::Range(1u, 65'536u));
  sub.add_option("--ranks-per-node", words.ranks_per_node, "how many a node may get (default any)")
      ->type_name("MIN:MAX");
  add_duration(sub, "--estimate", gang.estimate_ms,
               "how long it runs without failures; with --share, on a unit of its own");
  sub.add_option("--max-restarts", gang.max_restarts,
                 "tries after failures of a rank (default 3); lost nodes do not count")
      ->needs(ranks);
  add_duration(sub, "--start-within", gang.start_within_ms,
               "all ranks must run by then (default 2m)");
}

void add_share_options(CLI::App& sub, ShareWords& words, CLI::Option& units) {
  auto* share = sub.add_option("--share", words.share,
                               "a part of a unit that tasks share, in thousandths of its compute, "
                               "or auto, as much as it is predicted to use; behind either, of its "
                               "memory")
                    ->type_name("{auto|MILLI}[:BYTES]")
                    ->check(share_fault)
                    ->excludes(&units);
  sub.add_option("--class", words.job_class,
                 "latency-sensitive goes before best-effort and takes from its shares (default "
                 "best-effort; with a promise the other)")
      ->check(CLI::IsMember({"latency-sensitive", "best-effort"}))
      ->needs(share);
  auto* promise = add_duration(sub, "--promise", words.promise_ms,
                               "it is to be done so long after now, or is refused (1s or more)")
                      ->check([](const std::string& text) {
                        const auto promise_ms = parse_promise_ms(text);
                        return promise_ms ? "" : promise_ms.error().message;
                      })
                      ->needs(share);
  sub.add_flag("--promise-on-trial", words.promise_on_trial,
               "not refused where the promise may be kept: it is made, or not, once what was "
               "measured tells whether it is")
      ->needs(promise);
  sub.add_option("--model-card", words.card_file,
                 "what its model is made of, as tierctl model describe -j writes it")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->needs(share);
}

void add_elastic_options(CLI::App& sub, ElasticWords& words, CLI::Option& units) {
  auto* elastic = sub.add_option("--elastic", words.range,
                                 "units, of ranks each, that change while it runs, to lower the "
                                 "loss it reports")
                      ->type_name("MIN:MAX")
                      ->excludes(&units);
  sub.add_option("--weight", words.weight, "what it gains counts so many times (default 1)")
      ->check(number_between(0.01, 100.0))
      ->needs(elastic);
  sub.add_option("--measure", words.measure,
                 "what is to fall, or to rise, of what it reports (default its loss)")
      ->type_name("NAME[:up|:down]")
      ->needs(elastic);
  auto* goal = sub.add_option("--goal", words.goal, "of the measure, to be reached by --deadline")
                   ->check(number_between(-1e300, 1e300).description(""))
                   ->needs(elastic);
  auto* deadline =
      add_duration(sub, "--deadline", words.deadline_ms, "from now on, for its goal")->needs(goal);
  goal->needs(deadline);
}

CLI::Option* add_task_options(CLI::App& sub, Arguments& arguments) {
  auto& task = arguments.task;
  sub.add_option(
      "--name", task.name,
      "default: the command's first word; with --share also a mark of all of it, as runs "
      "of a name foretell the next one");
  sub.add_option("--dataset", arguments.datasets, "to read, or NAME:rw to write; repeat for more")
      ->type_name("NAME[:rw]")
      ->allow_extra_args(false);
  auto* units = sub.add_option("--units", task.units, "compute units (default 1)")
                    ->check(CLI::Range(1u, 65'536u));
  add_size(sub, "--memory", task.memory_bytes, "memory limit (default none)");
  add_size(sub, "--swap-room", task.swap_room_bytes,
           "of its node's tiers, for tensors that its program swaps out (of a gang: each rank)");
  add_elastic_options(sub, arguments.elastic, *units);
  add_share_options(sub, arguments.share, *units);
  sub.add_option("--float-ops", task.float_operations, "estimated float32 operations")
      ->check(number_between(0, 1e300).description("NONNEGATIVE"));
  sub.add_option("--int-ops", task.int_operations, "estimated int32 operations")
      ->check(number_between(0, 1e300).description("NONNEGATIVE"));
  add_duration(sub, "--time-limit", task.time_limit_ms, "end it after (default never)");
  sub.add_option("--env", arguments.env, "a variable; repeat for more")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const size_t equals = text.find('=');
        return equals == 0 || equals == text.npos ? "'" + text + "' is not NAME=VALUE" : "";
      });
  sub.add_option("--mem-tier", task.memory_tier,
                 "where its memory is to be: fast, slow, interleave:W1,W2 or heap:W1,W2, with "
                 "weights of fast and slow memory (default: where its heat brings it)")
      ->type_name("TIER")
      ->check([](const std::string& text) {
        const auto wish = parse_memory_wish(text);
        return wish ? "" : wish.error().message;
      });
  sub.add_option("--priority", task.priority, "of two that wait, the higher goes first (default 0)")
      ->check(CLI::Range(-1000, 1000));
  add_gang_options(sub, task.gang, arguments.gang);
  sub.add_option("--node", task.node, "run there; default: the policy chooses");
  return sub.add_option("COMMAND", task.argv, "what to run, after --");
}

}  // namespace

void add_task_submit(CLI::App& task, Context& context) {
  auto arguments = std::make_shared<Arguments>();
  auto* sub =
      task.add_subcommand("submit", "submit --dataset NAME -- COMMAND..., or --file TASKS.json");
  add_task_options(*sub, *arguments);
  const auto of_one_task = sub->get_options([](const CLI::Option*) { return true; });
  auto* file = sub->add_option("--file", arguments->file,
                               "several tasks, which may wait for each other; - is stdin")
                   ->type_name("TASKS.json");
  for (auto* option : of_one_task)
    if (option != sub->get_help_ptr()) file->excludes(option);
  sub->add_flag("--wait", arguments->wait, "until they have ended; exit code 1 if one failed");
  sub->add_option("--request-id", arguments->request_id, "the same again is the same request")
      ->type_name("ID")
      ->check(no_empty_text);
  // The file is read before anything is dialled: its mistakes need no coordinator to be seen.
  sub->callback([&context, arguments] {
    if (arguments->file.empty() && arguments->task.argv.empty())
      throw CLI::RequiredError("a command after -- or --file TASKS.json");
    if (const auto applied = apply(arguments->share, arguments->task); !applied)
      throw CLI::ValidationError(applied.error().message);
    if (arguments->file.empty() && arguments->task.name.empty())
      arguments->task.name = arguments->task.is_shared() ? name_by_command(arguments->task.argv)
                                                         : arguments->task.argv.front();
    if (const auto applied = apply(arguments->gang, arguments->task); !applied)
      throw CLI::ValidationError(applied.error().message);
    if (const auto applied = apply(arguments->elastic, arguments->task); !applied)
      throw CLI::ValidationError(applied.error().message);
    context.command = [&context, arguments]() -> int {
      const auto tasks = tasks_of(*arguments);
      if (!tasks) return print_error(context.output, tasks.error());
      return run_connected(context, [&](ClusterConnection& connection) {
        return submit(context, connection, *arguments, *tasks);
      });
    };
  });
}

}  // namespace tierpilot::tierctl
