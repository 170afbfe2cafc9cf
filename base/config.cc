#include "base/config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <map>
#include <set>
#include <stdexcept>

#include "base/bytes.h"
#include "base/sysroot.h"

namespace tierpilot {

struct ConfigReader::State {
  toml::table root;
  std::string origin;
  std::set<std::string> known;  // "section.key" that somebody asked for
  std::vector<std::string> errors;
  std::vector<std::string> hints;
  std::map<std::string, toml::table*, std::less<>> listed;  // by name: "placement.rule[0]"

  static std::string join(std::string_view section, std::string_view key) {
    return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  }

  static std::string item(std::string_view list, size_t index) {
    return fmt::format("{}[{}]", list, index);
  }

  toml::table* table(std::string_view section) {
    if (const auto found = listed.find(section); found != listed.end()) return found->second;
    return section.empty() ? &root : root[section].as_table();
  }

  toml::node* find(std::string_view section, std::string_view key) {
    known.insert(join(section, key));
    auto* where = table(section);
    return where ? where->get(key) : nullptr;
  }

  void complain(const toml::node* node, std::string_view section, std::string_view key,
                std::string_view why) {
    errors.push_back(remark(node, section, key, why));
  }

  std::string remark(const toml::node* node, std::string_view section, std::string_view key,
                     std::string_view text) const {
    const auto line = node ? node->source().begin.line : 0;
    return line ? fmt::format("{}:{}: {}: {}", origin, line, join(section, key), text)
                : fmt::format("{}: {}: {}", origin, join(section, key), text);
  }

  // Keys of a table, and of the tables in it that somebody asked for.
  void complain_of_unknown(toml::table& within, const std::string& section) {
    for (auto&& [name, node] : within) {
      const auto key = join(section, name.str());
      if (!known.contains(key)) complain(&node, section, name.str(), "unknown key");
      if (auto* inner = node.as_table(); inner && section.empty() && known.contains(key))
        complain_of_unknown(*inner, key);
      for (size_t i = 0; listed.contains(item(key, i)); ++i)
        complain_of_unknown(*listed[item(key, i)], item(key, i));
    }
  }
};

ConfigReader::ConfigReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;
ConfigReader::~ConfigReader() = default;

Result<ConfigReader> ConfigReader::load(const std::filesystem::path& path) {
  auto text = Sysroot("/").read(std::filesystem::absolute(path));
  if (!text) return fail(text.error().code, fmt::format("configuration {}", text.error().message));
  if (text->ends_with('\r')) text->pop_back();  // of a last line's CR LF
  return parse(*text, path.string());
}

Result<ConfigReader> ConfigReader::parse(std::string_view toml_text, std::string origin) {
  auto state = std::make_unique<State>();
  try {  // Debian's libtomlplusplus is built with exceptions; the other form does not link
    state->root = toml::parse(toml_text, origin);
  } catch (const toml::parse_error& error) {
    const auto& where = error.source().begin;
    return fail(ErrorCode::kInvalid, fmt::format("{}:{}:{}: not TOML: {}", origin, where.line,
                                                 where.column, error.description()));
  }
  state->origin = std::move(origin);
  return ConfigReader(std::move(state));
}

ConfigSection ConfigReader::section(std::string_view name) {
  if (name.find('.') != name.npos)
    throw std::logic_error(fmt::format("section '{}': there is one level of tables", name));
  if (!name.empty()) {
    if (auto* node = state_->find("", name); node && !node->is_table())
      state_->complain(node, "", name, "must be a table");
  }
  return ConfigSection(*this, std::string(name));
}

Status ConfigReader::finish() {
  state_->complain_of_unknown(state_->root, "");
  if (state_->errors.empty()) return {};
  return fail(ErrorCode::kInvalid, fmt::format("{}", fmt::join(state_->errors, "\n")));
}

const std::vector<std::string>& ConfigReader::hints() const {
  return state_->hints;
}

std::string ConfigSection::text(std::string_view key, std::string fallback) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  if (auto value = node->value_exact<std::string>()) return *value;
  reader_.state_->complain(node, name_, key, "must be a string");
  return fallback;
}

bool ConfigSection::boolean(std::string_view key, bool fallback) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  if (auto value = node->value_exact<bool>()) return *value;
  reader_.state_->complain(node, name_, key, "must be true or false");
  return fallback;
}

int64_t ConfigSection::integer(std::string_view key, int64_t fallback, int64_t min, int64_t max) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  auto value = node->value_exact<int64_t>();
  if (value && *value >= min && *value <= max) return *value;
  reader_.state_->complain(node, name_, key,
                           fmt::format("must be a whole number from {} to {}", min, max));
  return fallback;
}

double ConfigSection::number(std::string_view key, double fallback, double min, double max) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  auto value = node->value<double>();
  if (value && *value >= min && *value <= max) return *value;
  reader_.state_->complain(node, name_, key,
                           fmt::format("must be a number from {} to {}", min, max));
  return fallback;
}

uint64_t ConfigSection::bytes(std::string_view key, uint64_t fallback) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  if (auto value = node->value_exact<int64_t>(); value && *value >= 0)
    return static_cast<uint64_t>(*value);
  if (auto value = node->value_exact<std::string>())
    if (auto parsed = parse_bytes(*value)) return *parsed;
  reader_.state_->complain(node, name_, key, "must be a size such as \"64MiB\"");
  return fallback;
}

std::vector<int> ConfigSection::id_list(std::string_view key, std::vector<int> fallback) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  if (auto value = node->value_exact<std::string>())
    if (auto parsed = parse_id_list(*value)) return *parsed;
  if (auto* array = node->as_array()) {
    std::vector<int> ids;
    for (auto&& item : *array)
      if (auto id = item.value_exact<int64_t>(); id && *id >= 0 && *id <= 65535)
        ids.push_back(static_cast<int>(*id));
    if (ids.size() == array->size()) return ids;
  }
  reader_.state_->complain(node, name_, key, "must be ids such as \"0-3,8\" or [0, 1]");
  return fallback;
}

std::vector<std::string> ConfigSection::texts(std::string_view key,
                                              std::vector<std::string> fallback) {
  auto* node = reader_.state_->find(name_, key);
  if (!node) return fallback;
  if (auto* array = node->as_array()) {
    std::vector<std::string> items;
    for (auto&& item : *array)
      if (auto value = item.value_exact<std::string>()) items.push_back(*value);
    if (items.size() == array->size()) return items;
  }
  reader_.state_->complain(node, name_, key, "must be a list of strings");
  return fallback;
}

bool ConfigSection::has(std::string_view key) const {
  auto* table = reader_.state_->table(name_);
  return table && table->contains(key);
}

std::vector<ConfigSection> ConfigSection::tables(std::string_view key) {
  std::vector<ConfigSection> sections;
  auto& state = *reader_.state_;
  auto* node = state.find(name_, key);
  if (!node) return sections;
  auto* array = node->as_array();
  if (!array || !array->is_homogeneous(toml::node_type::table)) {
    state.complain(node, name_, key, "must be a list of tables");
    return sections;
  }
  using State = ConfigReader::State;
  const auto list = State::join(name_, key);
  for (size_t i = 0; i < array->size(); ++i) {
    state.listed[State::item(list, i)] = array->get(i)->as_table();
    sections.push_back(ConfigSection(reader_, State::item(list, i)));
  }
  return sections;
}

void ConfigSection::complain(std::string_view key, std::string why) {
  reader_.state_->complain(reader_.state_->find(name_, key), name_, key, why);
}

void ConfigSection::hint(std::string_view key, std::string what) {
  auto& state = *reader_.state_;
  state.hints.push_back(state.remark(state.find(name_, key), name_, key, what));
}

}  // namespace tierpilot
