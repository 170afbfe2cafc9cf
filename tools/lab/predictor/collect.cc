#include "tools/lab/predictor/collect.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "daemon/probe/active/measure.h"

namespace tierpilot::lab {
namespace {

namespace fs = std::filesystem;

// Of the folder of tierpilot-lab, as installed or as in the build folder of a source tree.
constexpr const char* kModules[] = {"../../lib/python3/dist-packages", "../../../python"};

constexpr unsigned kAnswersWithinS = 60;  // a program that is asked whether it has PyTorch

Result<fs::path> find_modules() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* nearby : kModules) {
    const auto folder = fs::weakly_canonical(program / nearby, error);
    if (fs::exists(folder / "tierpilot/collect/__main__.py", error)) return folder;
  }
  return fail(
      ErrorCode::kNotFound,
      fmt::format("the Python package tierpilot is not beside {}: reinstall it", program.string()));
}

void become(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
}

bool has_torch(const std::string& python) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    alarm(kAnswersWithinS);
    become(
        {python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"});
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Result<std::string> find_python(const std::string& named) {
  if (!named.empty()) {
    if (has_torch(named)) return named;
    return fail(ErrorCode::kUnavailable,
                fmt::format("'{}' is no Python that has PyTorch: name one with --python", named));
  }
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (has_torch(python)) return python;
  return fail(
      ErrorCode::kUnavailable,
      "neither python3 nor /usr/bin/python3 has PyTorch: install python3-torch, or name one "
      "that has it with --python");
}

// Nodes measure theirs by the same program, so that what is collected here is foretold there.
double float32_ops_per_s(int cpu) {
  cpu_set_t before, one;
  CPU_ZERO(&one);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &one);
  const bool moved = cpu >= 0 && sched_getaffinity(0, sizeof before, &before) == 0 &&
                     sched_setaffinity(0, sizeof one, &one) == 0;
  const double rate = measure_operations().float32_ops_per_s;
  if (moved) (void)sched_setaffinity(0, sizeof before, &before);
  return rate;
}

}  // namespace

int collect(const Context& context, const CollectOptions& options) {
  const auto modules = find_modules();
  if (!modules) return print_error(context.output, modules.error());
  const auto python = find_python(options.python);
  if (!python) return print_error(context.output, python.error());
  const char* path = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (modules->string() + (path && *path ? ":" + std::string(path) : "")).c_str(),
         1);
  std::vector<std::string> words{*python,
                                 "-m",
                                 "tierpilot.collect",
                                 "--out",
                                 options.out,
                                 "--configurations",
                                 std::to_string(options.configurations),
                                 "--seconds",
                                 fmt::format("{}", options.seconds),
                                 "--seed",
                                 std::to_string(options.seed),
                                 "--grow-batches",
                                 std::to_string(options.grow_batches),
                                 "--time-limit",
                                 fmt::format("{}", options.time_limit_s)};
  if (!options.architectures.empty())
    words.insert(words.end(), {"--architectures", options.architectures});
  if (options.cpu >= 0) words.insert(words.end(), {"--cpu", std::to_string(options.cpu)});
  words.insert(words.end(),
               {"--float32-ops-per-s", fmt::format("{}", float32_ops_per_s(options.cpu))});
  words.insert(words.end(), {"--device", options.device});
  if (options.pairs) words.emplace_back("--pairs");
  if (options.overwrite) words.emplace_back("--overwrite");
  if (context.output.json) words.emplace_back("--json");
  become(words);
  return print_error(context.output,
                     fail_errno(errno, "'" + *python + "' cannot be started").value());
}

}  // namespace tierpilot::lab
