#include <fmt/format.h>

#include <charconv>
#include <climits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/table/line_reader.h"
#include "base/text/json_member.h"
#include "base/text/json_text.h"
#include "policies/swap/graph_builder.h"
#include "policies/swap/readers.h"

namespace tierpilot::swap {
namespace {

using nlohmann::json;

tl::unexpected<Error> wrong(std::string why) {
  return fail(ErrorCode::kInvalid, std::move(why));
}

Result<std::string> text_of(const json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_string())
    return wrong(fmt::format("needs \"{}\", a string", key));
  return found->get<std::string>();
}

// Numbers are decimal strings.
Result<int64_t> number_of(const json& line, const char* key) {
  const auto text = text_of(line, key);
  if (!text) return tl::unexpected(text.error());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size())
    return wrong(fmt::format("\"{}\" is '{}', not a whole number", key, text->substr(0, 40)));
  return value;
}

Result<std::vector<std::string>> names_of(const json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_array())
    return wrong(fmt::format("needs \"{}\", a list of names", key));
  std::vector<std::string> names;
  for (const auto& name : *found) {
    if (!name.is_string()) return wrong(fmt::format("\"{}\" may only have names in it", key));
    names.push_back(name.get<std::string>());
  }
  return names;
}

Result<std::vector<int64_t>> positions_of(const json& line) {
  const auto found = line.find("MUTATE");
  if (found == line.end() || !found->is_array())
    return wrong("needs \"MUTATE\", a list of positions");
  std::vector<int64_t> positions;
  for (const auto& position : *found) {
    if (!position.is_number_integer()) return wrong("\"MUTATE\" may only have whole numbers in it");
    positions.push_back(position.get<int64_t>());
  }
  return positions;
}

class DtrReader {
 public:
  explicit DtrReader(LineReader lines) : lines_(std::move(lines)) {}

  Result<Graph> read() {
    const auto starts = skip_to_start();
    if (!starts) return tl::unexpected(starts.error());
    if (!*starts)
      return wrong(
          fmt::format("{}: has no line {{\"INSTRUCTION\":\"ANNOTATE\",\"ANNOTATION\":"
                      "\"START\"}}, after which a log begins",
                      lines_.path()));
    for (;;) {
      const auto line = next();
      if (!line) return at_place(line.error());
      if (line->is_null()) break;
      if (auto status = take(*line); !status) return at_place(status.error());
    }
    auto graph = builder_.take(std::filesystem::path(lines_.path()).filename().string());
    if (graph.operators.empty()) return wrong(fmt::format("{}: has no operators", lines_.path()));
    return graph;
  }

 private:
  tl::unexpected<Error> at_place(const Error& error) const {
    if (unreadable_) return tl::unexpected(error);  // it says where
    return fail(error.code, fmt::format("{}: {}", lines_.place(), error.message));
  }

  // Past the first line that says so, whatever the lines before it are; false: there is none.
  Result<bool> skip_to_start() {
    for (;;) {
      const auto line = lines_.next();
      if (!line) return tl::unexpected(line.error());
      if (!*line) return false;
      const auto parsed = parse_json_or_discard<json>(**line);
      if (parsed.is_object() && member_is(parsed, "INSTRUCTION", "ANNOTATE") &&
          member_is(parsed, "ANNOTATION", "START"))
        return true;
    }
  }

  // The next line that is not empty; null at the end.
  Result<json> next() {
    for (;;) {
      const auto line = lines_.next();
      unreadable_ = !line;
      if (!line) return tl::unexpected(line.error());
      if (!*line) return json();
      if ((*line)->find_first_not_of(" \t\r") == std::string::npos) continue;
      auto parsed = parse_json_or_discard<json>(**line);
      if (!parsed.is_object()) return wrong("is not a JSON object");
      return parsed;
    }
  }

  // The line that has to come now, of this kind and about this tensor.
  Result<json> follow(const char* kind, const std::string& name) {
    auto line = next();
    if (!line) return line;
    if (line->is_null()) return wrong(fmt::format("the log ends before {} of '{}'", kind, name));
    if (!member_is(*line, "INSTRUCTION", kind) || !member_is(*line, "NAME", name))
      return wrong(fmt::format("has to be {} of '{}'", kind, name));
    return line;
  }

  Status take(const json& line) {
    const auto kind = text_of(line, "INSTRUCTION");
    if (!kind) return tl::unexpected(kind.error());
    if (*kind == "ANNOTATE") return annotate(line);
    if (*kind == "COPY" || *kind == "COPY_FROM") return copy(line, *kind == "COPY");
    const auto name = text_of(line, "NAME");
    if (!name) return tl::unexpected(name.error());
    if (*kind == "CONSTANT") return constant(*name);
    if (*kind == "CALL") return call(line, *name);
    if (*kind == "MUTATE") return mutate(line, *name);
    if (*kind == "RELEASE") return builder_.release(*name);
    return wrong(fmt::format("'{}' is not an instruction that may stand here", *kind));
  }

  Status annotate(const json& line) {
    const auto what = text_of(line, "ANNOTATION");
    if (!what) return tl::unexpected(what.error());
    if (*what == "BACKWARD") builder_.backward();
    return {};
  }

  Result<int64_t> memory(const std::string& name) {
    const auto line = follow("MEMORY", name);
    return line ? number_of(*line, "MEMORY") : tl::unexpected(line.error());
  }

  Status constant(const std::string& name) {
    const auto bytes = memory(name);
    return bytes ? builder_.constant(name, *bytes) : tl::unexpected(bytes.error());
  }

  Status call(const json& line, const std::string& name) {
    const auto args = names_of(line, "ARGS"), results = names_of(line, "RESULT");
    const auto time = number_of(line, "TIME");
    if (!args) return tl::unexpected(args.error());
    if (!results) return tl::unexpected(results.error());
    if (!time) return tl::unexpected(time.error());
    std::vector<NewTensor> made;
    for (const auto& result : *results) {
      const auto bytes = memory(result);
      if (!bytes) return tl::unexpected(bytes.error());
      const auto shared = follow("ALIAS", result);
      if (!shared) return tl::unexpected(shared.error());
      const auto alias = number_of(*shared, "ALIAS");
      if (!alias) return tl::unexpected(alias.error());
      made.push_back({result, *bytes, static_cast<int>(std::clamp<int64_t>(*alias, -2, INT_MAX))});
    }
    return builder_.call(name, *args, made, *time);
  }

  Status mutate(const json& line, const std::string& name) {
    const auto args = names_of(line, "ARGS");
    const auto positions = positions_of(line);
    const auto time = number_of(line, "TIME");
    if (!args) return tl::unexpected(args.error());
    if (!positions) return tl::unexpected(positions.error());
    if (!time) return tl::unexpected(time.error());
    return builder_.mutate(name, *args, *positions, *time);
  }

  Status copy(const json& line, bool fresh) {
    const auto to = text_of(line, "DST"), from = text_of(line, "SRC");
    if (!to) return tl::unexpected(to.error());
    if (!from) return tl::unexpected(from.error());
    return fresh ? builder_.copy(*to, *from) : builder_.copy_from(*to, *from);
  }

  LineReader lines_;
  bool unreadable_ = false;  // the line that was asked for last
  GraphBuilder builder_;
};

}  // namespace

Result<Graph> read_dtr_log(const std::filesystem::path& path) {
  auto lines = LineReader::open(path, "log");
  if (!lines) return tl::unexpected(lines.error());
  return DtrReader(std::move(*lines)).read();
}

}  // namespace tierpilot::swap
