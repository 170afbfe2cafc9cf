#include "tools/tiertool/swap_record.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "policies/swap/readers.h"
#include "tools/output/python_command.h"

namespace tierpilot::tiertool {
namespace {

namespace fs = std::filesystem;

struct RecordCommand {
  std::string log = "step.dtr";
  int step = 3;
  std::vector<std::string> command;
};

// Beside the program: as installed, or as in the build folder of a source tree.
Result<fs::path> python_boot() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* there : {"../lib/python3/dist-packages/tierpilot/swapping/boot",
                            "../../../python/tierpilot/swapping/boot"})
    if (fs::exists(program / there, error)) return fs::weakly_canonical(program / there, error);
  return fail(ErrorCode::kNotFound,
              "the Python module tierpilot is not beside this program: reinstall it");
}

// Where to put the log: what a link names, as far as it goes.
Result<fs::path> place_of(const std::string& said) {
  constexpr int kMostLinks = 40;
  auto log = fs::absolute(said);
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(log, error); ++links)
    log = log.parent_path() / fs::read_symlink(log, error);
  const auto there = fs::status(log, error);
  if (fs::exists(there) && !fs::is_regular_file(there))
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: it is no plain file: name another one with --log", log.native()));
  if (fs::is_directory(log.parent_path(), error)) return log;
  return fail(ErrorCode::kNotFound,
              fmt::format("{}: there is no folder {}", log.native(), log.parent_path().native()));
}

// For what this process starts.
void tell_recorder(const RecordCommand& command, const fs::path& boot, const fs::path& log) {
  const char* path = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (boot.string() + (path && *path ? ":" + std::string(path) : "")).c_str(), 1);
  setenv("TIERPILOT_SWAP_RECORD", log.c_str(), 1);
  setenv("TIERPILOT_SWAP_RECORD_STEP", std::to_string(command.step).c_str(), 1);
  unsetenv("TIERPILOT_SWAP_BUDGET");
}

// Whoever ends this means the program, which would train on alone.
std::atomic<pid_t> passed_on_to;
void pass_on(int signal) {
  if (const pid_t program = passed_on_to) ::kill(program, signal);
}

// Its exit code; 128 and more: a signal. Where what is printed here is JSON, what the program
// prints is beside it.
Result<int> run(const RecordCommand& command, bool json) {
  std::vector<char*> arguments;
  for (const auto& word : command.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (json) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    return fail(ErrorCode::kNotFound,
                fmt::format("'{}' cannot be started: {}", arguments[0], std::strerror(error)));
  // Ctrl-C is for the program: what it has recorded by then is a step.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  passed_on_to = child;
  for (const int signal : {SIGTERM, SIGHUP}) std::signal(signal, pass_on);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail_errno(errno, "waiting for " + command.command.front());
  passed_on_to = 0;  // the number may be another's by now
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Puts what was recorded where it is to be. What is there when nothing was recorded would be taken
// for this run's log: it goes aside.
Status put_in_place(const fs::path& recorded, const fs::path& log, const RecordCommand& command,
                    int code) {
  std::error_code error;
  if (fs::exists(recorded, error)) {
    fs::rename(recorded, log, error);
    if (!error) return {};
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}: the step is in {}", log.native(),
                                                     error.message(), recorded.native()));
  }
  const auto aside = fs::path(log.native() + ".earlier");
  const bool moved = fs::exists(log, error) && (fs::rename(log, aside, error), !error);
  return fail(ErrorCode::kNotFound,
              fmt::format("'{}' ended with {} and no step was recorded: it has to be a Python "
                          "program that trains with PyTorch for at least {} steps (--step), and a "
                          "folder to which it may write {}{}",
                          command.command.front(), code, command.step, log.native(),
                          moved ? "; what was there is " + aside.native() + " now" : ""));
}

Status can_be_recorded(const std::vector<std::string>& command) {
  if (fs::path(command.front()).filename() == "tierpilot-swap")
    return fail(ErrorCode::kInvalid, fmt::format("'{}' swaps, and records nothing: record the "
                                                 "program that it would run",
                                                 command.front()));
  return reads_pythonpath(command);
}

int record(const Context& context, const RecordCommand& command) {
  if (const auto can = can_be_recorded(command.command); !can)
    return print_error(context.output, can.error());
  const auto boot = python_boot();
  if (!boot) return print_error(context.output, boot.error());
  const auto place = place_of(command.log);
  if (!place) return print_error(context.output, place.error());
  const auto& log = *place;
  const fs::path recorded = fmt::format("{}.{}.recording", log.native(), getpid());
  tell_recorder(command, *boot, recorded);
  const auto code = run(command, context.output.json);
  if (!code) return print_error(context.output, code.error());
  const auto placed = put_in_place(recorded, log, command, *code);
  if (!placed) {
    const int said = print_error(context.output, placed.error());
    return *code != 0 ? *code : said;
  }
  const auto graph = swap::read_dtr_log(log);
  if (!graph) return print_error(context.output, graph.error());
  const auto base = swap::baseline(*graph);
  print(context.output,
        {{"log", log.native()},
         {"exit_code", *code},
         {"operators", graph->operators.size()},
         {"storages", graph->storages.size()},
         {"peak_bytes", base.peak_bytes},
         {"time_ns", base.time_ns}},
        {{.rows = "",
          .columns = {{"LOG", "/log"},
                      {"OPERATORS", "/operators", Format::kNumber},
                      {"PEAK", "/peak_bytes", Format::kBytes},
                      {"TIME ns", "/time_ns", Format::kNumber}}}});
  return *code;
}

}  // namespace

void add_swap_record(CLI::App& swap, Context& context) {
  auto* verb = swap.add_subcommand("record", "one training step of a program, for swap replay");
  auto command = std::make_shared<RecordCommand>();
  verb->add_option("--log", command->log, "where to write it")
      ->type_name("FILE")
      ->check([](const std::string& text) { return text.empty() ? "a file needs a name" : ""; })
      ->capture_default_str();
  verb->add_option("--step", command->step, "which one; the first ones are slower than the rest")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("command", command->command, "the program and its arguments, after --")
      ->required();
  verb->callback([&context, command] {
    context.command = [&context, command] { return record(context, *command); };
  });
}

}  // namespace tierpilot::tiertool
