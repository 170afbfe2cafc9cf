// tierctl config check: the program that a file is for reads it, so there is one parser only.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>

#define TOML_HEADER_ONLY 0  // Debian compiles the library separately
#include <toml++/toml.h>

#include "base/unique_fd.h"
#include "tools/cluster/program.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

// Sections that only one of the two daemons knows.
const std::vector<std::pair<std::string, std::vector<std::string>>> kSections{
    {"tierpilotd", {"node", "tasks", "health", "pool", "swap", "probe", "placement"}},
    {"tierpilot-coordinator",
     {"coordinator", "listen", "lease", "queue", "gang", "users", "elastic", "data", "reward",
      "policy", "guard", "dqn", "dqn-published", "training"}}};
// Sections that both know.
const std::vector<std::string> kShared{"sharing", "tls", "metrics", "log"};

// Of a file with no section that one daemon only knows.
Error no_program(const std::string& file, const toml::table& document) {
  for (const auto& [key, value] : document) {
    if (std::ranges::find(kShared, key.str()) != kShared.end()) continue;
    const auto& at = key.source().begin;
    return {ErrorCode::kInvalid,
            fmt::format("{}:{}:{}: '{}' is no section of a node ([node], ...) or of a coordinator "
                        "([coordinator], ...)",
                        file, at.line, at.column, key.str())};
  }
  return {ErrorCode::kInvalid,
          fmt::format("{}: all that it has may be a node's or a coordinator's: name the program "
                      "with --program",
                      file)};
}

Result<std::string> program_for(const std::string& file) {
  try {
    const toml::table document = toml::parse_file(file);
    for (const auto& [program, sections] : kSections)
      for (const auto& section : sections)
        if (document.contains(section)) return program;
    return tl::unexpected(no_program(file, document));
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}:{}: {}", file, at.line, at.column, error.description()));
  }
}

struct Outcome {
  int status;
  std::string text;  // stdout and stderr
};

Result<Outcome> run_check(const std::filesystem::path& program, const std::string& file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) return fail_errno(errno, "fork");
  if (child == 0) {
    dup2(write_end.get(), STDOUT_FILENO);
    dup2(write_end.get(), STDERR_FILENO);
    execl(program.c_str(), program.c_str(), "--config", file.c_str(), "--check-config", nullptr);
    _exit(127);
  }
  write_end.reset();
  Outcome outcome{};
  char buffer[4096];
  for (ssize_t count; (count = read(read_end.get(), buffer, sizeof buffer)) != 0;) {
    if (count > 0) outcome.text.append(buffer, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  while (waitpid(child, &outcome.status, 0) < 0 && errno == EINTR) {
  }
  return outcome;
}

// Lines that say what a valid file should have otherwise.
nlohmann::ordered_json hints_in(const std::string& text) {
  constexpr std::string_view kHint = "hint: ";
  auto hints = nlohmann::ordered_json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kHint)) hints.push_back({{"text", line.substr(kHint.size())}});
  return hints;
}

int check(Context& context, const std::string& file, std::string name) {
  if (access(file.c_str(), R_OK) != 0)
    return print_error(context.output,
                       fail_errno(errno, fmt::format("configuration '{}'", file)).value());
  if (name.empty()) {
    auto found = program_for(file);
    if (!found) return print_error(context.output, found.error());
    name = *found;
  }
  const auto program = find_program(name);
  if (!program) return print_error(context.output, program.error());
  auto outcome = run_check(*program, file);
  if (!outcome) return print_error(context.output, outcome.error());
  while (outcome->text.ends_with('\n')) outcome->text.pop_back();
  if (!WIFEXITED(outcome->status) || WEXITSTATUS(outcome->status) != 0)
    return print_error(context.output,
                       {ErrorCode::kInvalid,
                        outcome->text.empty() ? fmt::format("{} gave no reason", program->string())
                                              : outcome->text});
  nlohmann::ordered_json value{{"file", file}, {"program", name}, {"valid", true}};
  std::vector<Table> tables{
      {.rows = "", .columns = {{"File", "/file"}, {"For", "/program"}, {"Valid", "/valid"}}}};
  if (auto hints = hints_in(outcome->text); !hints.empty()) {
    value["hints"] = std::move(hints);
    tables.push_back(
        {.title = "Hints", .rows = "/hints", .columns = {{"WHAT TO CHANGE", "/text"}}});
  }
  return print(context.output, value, tables);
}

}  // namespace

void add_config(CLI::App& app, Context& context) {
  auto* config = app.add_subcommand("config", "configuration files");
  config->require_subcommand(1);
  auto* sub = config->add_subcommand("check", "would a daemon start with this file?");
  auto file = std::make_shared<std::string>();
  auto program = std::make_shared<std::string>();
  sub->add_option("FILE", *file)->required();
  sub->add_option("--program", *program, "default: by the file's sections")
      ->check(CLI::IsMember({"tierpilotd", "tierpilot-coordinator"}));
  sub->callback([&context, file, program] {
    context.command = [&context, file, program] { return check(context, *file, *program); };
  });
}

}  // namespace tierpilot::tierctl
