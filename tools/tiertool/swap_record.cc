#include "tools/tiertool/swap_record.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "policies/swap/readers.h"

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

// Only between fork and exec.
[[noreturn]] void become(const RecordCommand& command, const fs::path& boot, const fs::path& log) {
  const char* path = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (boot.string() + (path && *path ? ":" + std::string(path) : "")).c_str(), 1);
  setenv("TIERPILOT_SWAP_RECORD", log.c_str(), 1);
  setenv("TIERPILOT_SWAP_RECORD_STEP", std::to_string(command.step).c_str(), 1);
  unsetenv("TIERPILOT_SWAP_BUDGET");
  std::vector<char*> arguments;
  for (const auto& word : command.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  fmt::print(stderr, "'{}' cannot be started: {}\n", command.command.front(),
             fmt::string_view(std::strerror(errno)));
  _exit(127);
}

// Its exit code; 128 and more: a signal.
Result<int> run(const RecordCommand& command, const fs::path& boot, const fs::path& log) {
  const pid_t child = fork();
  if (child < 0) return fail_errno(errno, "fork");
  if (child == 0) become(command, boot, log);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail_errno(errno, "waiting for " + command.command.front());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int record(const Context& context, const RecordCommand& command) {
  const auto boot = python_boot();
  if (!boot) return print_error(context.output, boot.error());
  const auto log = fs::absolute(command.log);
  std::error_code error;
  if (!fs::is_directory(log.parent_path(), error))
    return print_error(context.output,
                       {ErrorCode::kNotFound, fmt::format("{}: there is no folder {}", log.native(),
                                                          log.parent_path().native())});
  fs::remove(log, error);  // an older one would be taken for this one's
  if (error)
    return print_error(context.output,
                       {ErrorCode::kInvalid, fmt::format("{}: {}", log.native(), error.message())});
  const auto code = run(command, *boot, log);
  if (!code) return print_error(context.output, code.error());
  if (!fs::exists(log, error))
    return print_error(
        context.output,
        {ErrorCode::kNotFound,
         fmt::format("'{}' ended with {} and no step was recorded: it has to be a Python program "
                     "that trains with PyTorch for at least {} steps (--step), and a folder to "
                     "which it may write {}",
                     command.command.front(), *code, command.step, log.native())});
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
