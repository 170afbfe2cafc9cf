#include "tools/output/help_format.h"

#include <CLI/CLI.hpp>
#include <regex>

namespace tierpilot {
namespace {

class ReadableHelp : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    static const std::regex kRange(R"((\w+):(?:UINT|INT|FLOAT) in \[(\S+) - (\S+)\])"),
        kNotNegative(R"((\w+):NONNEGATIVE)"), kOneOf(R"(TEXT:\{)"),
        kNumber(R"(\b(?:UINT|INT|FLOAT)\b)");
    auto text = CLI::Formatter::make_option_opts(option);
    text = std::regex_replace(text, kRange, "$1 ($2 to $3)");
    text = std::regex_replace(text, kNotNegative, "$1 (0 or more)");
    text = std::regex_replace(text, kOneOf, "{");
    return std::regex_replace(text, kNumber, "NUMBER");
  }
};

void set_formatter(CLI::App& app, const std::shared_ptr<CLI::FormatterBase>& formatter) {
  app.formatter(formatter);
  for (auto* sub : app.get_subcommands([](CLI::App*) { return true; }))
    set_formatter(*sub, formatter);
}

}  // namespace

void use_readable_help(CLI::App& app) {
  set_formatter(app, std::make_shared<ReadableHelp>());
}

}  // namespace tierpilot
