#include "tools/output/arguments.h"

#include <fmt/format.h>
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <limits>
#include <new>
#include <ostream>
#include <string_view>

#include "tools/output/help_format.h"

namespace tierpilot {
namespace {

std::vector<CLI::App*> subcommands(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// Lets "tool object verb -j" reach the flags of the tool itself.
void fall_through(CLI::App& app) {
  for (auto* sub : subcommands(app)) {
    if (sub->get_prefix_command()) continue;  // its words are for another program
    sub->fallthrough();
    fall_through(*sub);
  }
}

// The verb the line got to, and the words that lead there.
std::pair<CLI::App*, std::string> deepest(CLI::App& app) {
  CLI::App* at = &app;
  std::string path = app.get_name();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().back();
    path += ' ' + at->get_name();
  }
  return {at, path};
}

int print_usage_error(CLI::App& app, const CLI::ParseError& error, const Output& output) {
  auto [where, path] = deepest(app);
  std::string what = error.what();
  // CLI11 asks for the missing verb before it looks at the word that stands in its place.
  const auto unknown = app.remaining(true);
  if (dynamic_cast<const CLI::RequiredError*>(&error) && !unknown.empty())
    what = fmt::format("'{}' is not known here", unknown.front());
  std::string choices;
  for (const auto* sub : subcommands(*where))
    if (!sub->get_name().empty())  // a group of options has none
      choices += (choices.empty() ? "; choose one of " : ", ") + sub->get_name();
  print_error(output, {ErrorCode::kInvalid,
                       fmt::format("{}: {}{}; see '{} --help'", path, what, choices, path)});
  return kExitUsage;
}

bool asks_for_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view arg = argv[i]; arg == "-j" || arg == "--json") return true;
  return false;
}

bool is_whole_number(std::string_view text) {
  constexpr size_t kMostDigits = 18;  // all of them fit into 64 bits
  const bool digits = text.find_first_not_of("0123456789") == text.npos;
  return digits && !text.empty() && text.size() <= kMostDigits;
}

}  // namespace

int carry_out(const Output& output, const std::function<int()>& command) {
  try {
    return command();
  } catch (const std::bad_alloc&) {
    return print_error(output, {ErrorCode::kExhausted, "the memory does not suffice"});
  } catch (const std::exception& failure) {
    return print_error(output, {ErrorCode::kIo, failure.what()});
  }
}

CLI::Validator number_between(double least, double most) {
  return {[least, most](std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return fmt::format("Value {} not in range {} to {}", text, least, most);
          },
          fmt::format("FLOAT in [{} - {}]", least, most)};
}

CLI::Validator whole_number() {
  return {[](std::string& text) {
            if (is_whole_number(text)) return std::string();
            return fmt::format("{} is no whole number from 0 on, of at most 18 digits", text);
          },
          "NUMBER"};
}

CLI::Validator process_number() {
  return {[](std::string& text) {
            const int64_t number = is_whole_number(text) ? std::stoll(text) : 0;
            const bool is_one = number > 0 && number <= std::numeric_limits<pid_t>::max();
            return is_one ? std::string() : fmt::format("{} is no number of a process", text);
          },
          "NUMBER"};
}

CLI::Validator id_number() {
  return {[](std::string& text) {
            if (is_whole_number(text)) return std::string();
            return fmt::format("{} is no number of one", text);
          },
          "NUMBER"};
}

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   Output& output) {
  app.add_flag("-j,--json", output.json, "print JSON");
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), TIERPILOT_VERSION));
  fall_through(app);
  use_readable_help(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error, *output.out, *output.err);
      return finish(output);
    }
    output.json = asks_for_json(argc, argv);  // the flag may stand behind the mistake
    return print_usage_error(app, error, output);
  }
  return std::nullopt;
}

}  // namespace tierpilot
