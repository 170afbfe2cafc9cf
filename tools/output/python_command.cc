#include "tools/output/python_command.h"

#include <fmt/format.h>

#include <filesystem>

namespace tierpilot {
namespace {

// What a word of Python's command line is: options, one whose value follows, the program, or what
// shuts the environment out.
enum class Word { kOptions, kWithValue, kProgram, kIsolates };

Word word_of(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return Word::kProgram;
  if (word[1] == '-') return word == "--" ? Word::kProgram : Word::kOptions;
  for (size_t i = 1; i < word.size(); ++i) {
    if (word[i] == 'E' || word[i] == 'I') return Word::kIsolates;
    if (word[i] == 'c' || word[i] == 'm') return Word::kProgram;
    if (word[i] == 'W' || word[i] == 'X')
      return i + 1 == word.size() ? Word::kWithValue : Word::kOptions;
  }
  return Word::kOptions;
}

}  // namespace

Status reads_pythonpath(const std::vector<std::string>& command) {
  if (!std::filesystem::path(command.front()).filename().string().starts_with("python")) return {};
  for (size_t i = 1; i < command.size(); ++i) {
    const auto word = word_of(command[i]);
    if (word == Word::kProgram) break;
    if (word == Word::kWithValue) ++i;
    if (word == Word::kIsolates)
      return fail(ErrorCode::kInvalid,
                  fmt::format("with '{}' Python leaves PYTHONPATH out, by which tierpilot gets "
                              "into the program, and nothing would swap: run it without",
                              command[i]));
  }
  return {};
}

}  // namespace tierpilot
