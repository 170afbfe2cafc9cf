// Strict TOML: every key that is present must be asked for, every value must be of its type and
// range, and every complaint names file and line. Wraps toml++.
//
//   ConfigReader reader = *ConfigReader::load(path);
//   auto section = reader.section("lease");
//   config.lease_ms = section.integer("duration_ms", 10'000, 500, 600'000);
//   if (auto status = reader.finish(); !status) ...   // wrong values and unknown keys
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tierpilot {

class ConfigReader;

// A table of the file. Getters return `fallback` when the key is absent and note an error,
// returning `fallback`, when the value is wrong: all errors of a file are shown at once by
// finish().
class ConfigSection {
 public:
  std::string text(std::string_view key, std::string fallback);
  bool boolean(std::string_view key, bool fallback);
  int64_t integer(std::string_view key, int64_t fallback, int64_t min, int64_t max);
  double number(std::string_view key, double fallback, double min, double max);
  // "64MiB" or a plain number of bytes.
  uint64_t bytes(std::string_view key, uint64_t fallback);
  // "0-3,8" or [0, 1, 2].
  std::vector<int> id_list(std::string_view key, std::vector<int> fallback);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);
  bool has(std::string_view key) const;
  // One section per table of a list: [[placement.rule]] is "rule" of "placement".
  std::vector<ConfigSection> tables(std::string_view key);
  // Notes an error at `key` (or at the section when the key is absent).
  void complain(std::string_view key, std::string why);
  // Notes what an operator should change, though the file is right as it is.
  void hint(std::string_view key, std::string what);

 private:
  friend class ConfigReader;
  ConfigSection(ConfigReader& reader, std::string name) : reader_(reader), name_(std::move(name)) {}
  ConfigReader& reader_;
  std::string name_;
};

class ConfigReader {
 public:
  static Result<ConfigReader> load(const std::filesystem::path& path);
  // `origin` names the text in messages.
  static Result<ConfigReader> parse(std::string_view toml, std::string origin);
  ConfigReader(ConfigReader&&) noexcept;
  ~ConfigReader();

  // "" is the file's top level. An absent section has no keys. Of one level: a name with a dot is a
  // bug, as it would find nothing.
  ConfigSection section(std::string_view name);
  // One error that lists every wrong value and every key nobody asked for, a line each.
  Status finish();
  // What the sections have hinted at, a line each.
  const std::vector<std::string>& hints() const;

 private:
  friend class ConfigSection;
  struct State;
  explicit ConfigReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tierpilot
