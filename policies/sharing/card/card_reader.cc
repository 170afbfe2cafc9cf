#include "policies/sharing/card/card_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "policies/sharing/card/plain_name.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::json;

constexpr double kMost = 1e18;       // of any figure
constexpr double kMostWhole = 1e15;  // of what is counted
constexpr size_t kMaxNesting = 8;    // of the JSON
constexpr size_t kMaxNames = 256;    // of kinds, unknown operators, guesses
constexpr size_t kMaxNameBytes = 256;

// Before it is parsed: brackets in text do not count.
bool is_too_deep(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '{' || text[i] == '[')) {
      if (++depth > kMaxNesting) return true;
    } else if (!quoted && (text[i] == '}' || text[i] == ']')) {
      depth -= depth > 0;
    }
  }
  return false;
}

// The fields of one object. The first that is wrong stays as the error.
class Fields {
 public:
  Fields(const json& object, std::string place, Status& status)
      : object_(object), place_(std::move(place)), status_(status) {
    if (!object.is_object()) wrong("is no object");
  }

  void only(std::initializer_list<std::string_view> names) {
    for (const auto& [name, value] : object_.items())
      if (std::find(names.begin(), names.end(), name) == names.end())
        wrong(fmt::format("has a field '{}', which nobody knows", plain_name(name)));
  }
  const json* find(const char* name, bool required) {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    if (object_.is_object() && found != object_.end()) return &*found;
    if (required) wrong(fmt::format("has no '{}'", name));
    return nullptr;
  }
  double number(const char* name, bool required, double most = kMost) {
    const auto* value = find(name, required);
    if (!value) return 0;
    const double figure = value->is_number() ? value->get<double>() : -1;
    if (figure >= 0 && figure <= most) return figure;  // NaN is neither
    wrong(fmt::format("has a '{}' that is no number from 0 to {:g}", plain_name(name), most));
    return 0;
  }
  uint64_t whole(const char* name, bool required, double most = kMostWhole) {
    const double figure = number(name, required, most);
    if (figure != std::floor(figure)) wrong(fmt::format("has a '{}' that is not whole", name));
    return static_cast<uint64_t>(figure);
  }
  std::string text(const char* name) {
    const auto* value = find(name, false);
    if (!value) return {};
    if (value->is_string() && value->get_ref<const std::string&>().size() <= kMaxNameBytes)
      return value->get<std::string>();
    wrong(fmt::format("has a '{}' that is no text of up to {} bytes", name, kMaxNameBytes));
    return {};
  }
  bool truth(const char* name) {
    const auto* value = find(name, false);
    if (value && !value->is_boolean())
      wrong(fmt::format("has a '{}' that is not true or false", name));
    return value && value->is_boolean() && value->get<bool>();
  }
  // An object of names, or nothing; they are few and short.
  const json* names(const char* name, bool required) {
    const auto* value = find(name, required);
    if (!value) return nullptr;
    bool fits = value->is_object() && value->size() <= kMaxNames;
    if (fits)
      for (const auto& [key, each] : value->items())
        fits = fits && !key.empty() && key.size() <= kMaxNameBytes;
    if (fits) return value;
    wrong(fmt::format("has a '{}' that is no object of up to {} short names", name, kMaxNames));
    return nullptr;
  }
  void wrong(const std::string& what) {
    if (status_) status_ = fail(ErrorCode::kInvalid, fmt::format("{} {}", place_, what));
  }

 private:
  const json& object_;
  const std::string place_;
  Status& status_;
};

OperatorUse read_use(const std::string& kind, const json& value, Status& status) {
  Fields fields(value, fmt::format("operator '{}'", plain_name(kind)), status);
  fields.only({"count", "largest_input", "input_sum", "output_sum", "parameter_sum", "flops"});
  return {.count = fields.whole("count", true),
          .largest_input = fields.number("largest_input", true),
          .input_sum = fields.number("input_sum", true),
          .output_sum = fields.number("output_sum", true),
          .parameter_sum = fields.number("parameter_sum", false),
          .flops = fields.number("flops", true)};
}

JobCard read_job(const json& value, Status& status) {
  Fields fields(value, "its 'job'", status);
  fields.only({"iterations", "optimizer", "samples_per_s", "load_s", "loads_ahead", "threads"});
  JobCard job{.iterations = fields.whole("iterations", false),
              .optimizer = fields.text("optimizer"),
              .loads_ahead = fields.truth("loads_ahead"),
              .threads = static_cast<uint32_t>(fields.whole("threads", false, 1e5))};
  for (const char* name : {"iterations", "threads"})
    if (fields.find(name, false) && fields.whole(name, false) == 0)
      fields.wrong(fmt::format("has '{}' of 0", name));
  if (fields.find("load_s", false)) job.load_s = fields.number("load_s", false, 1e6);
  if (fields.find("samples_per_s", false)) {
    job.samples_per_s = fields.number("samples_per_s", false, 1e12);
    if (*job.samples_per_s < 1e-9) fields.wrong("has 'samples_per_s' of 0");
  }
  return job;
}

void read_lists(ModelCard& card, Fields& fields, Status& status) {
  if (const auto* kinds = fields.names("operators", true))
    for (const auto& [kind, use] : kinds->items())
      card.operators[kind] = read_use(kind, use, status);
  if (const auto* unknown = fields.names("unknown_operators", false)) {
    Fields counts(*unknown, "its 'unknown_operators'", status);
    for (const auto& [name, count] : unknown->items())
      card.unknown_operators[name] = counts.whole(name.c_str(), true);
  }
  const auto* guessed = fields.find("guessed", false);
  if (!guessed) return;
  if (!guessed->is_array() || guessed->size() > kMaxNames)
    return fields.wrong(
        fmt::format("has a 'guessed' that is no list of up to {} texts", kMaxNames));
  for (const auto& each : *guessed) {
    if (!each.is_string()) return fields.wrong("has a 'guessed' of what is no text");
    card.guessed.push_back(each.get<std::string>());
  }
}

ModelCard read_fields(const json& value, Status& status) {
  Fields fields(value, "it", status);
  if (fields.whole("schema", true) != 1) fields.wrong("has another 'schema' than 1");
  if (fields.text("kind") != "model card") fields.wrong("has another 'kind' than 'model card'");
  fields.only({"schema",
               "kind",
               "producer",
               "opset",
               "batch",
               "input_elements",
               "operators",
               "parameters",
               "parameter_bytes",
               "parameter_tensors",
               "activation_bytes",
               "traffic_bytes",
               "flops",
               "depth",
               "launches",
               "unknown_operators",
               "unknown_shapes",
               "guessed",
               "uncertain",
               "warnings",
               "job"});
  ModelCard card{.producer = fields.text("producer"),
                 .opset = static_cast<int64_t>(fields.whole("opset", false, 1e6)),
                 .batch = static_cast<uint32_t>(fields.whole("batch", true, kMaxBatch)),
                 .input_elements = fields.number("input_elements", false),
                 .parameters = fields.number("parameters", true),
                 .parameter_bytes = fields.number("parameter_bytes", true),
                 .parameter_tensors = fields.whole("parameter_tensors", false),
                 .activation_bytes = fields.number("activation_bytes", true),
                 .traffic_bytes = fields.number("traffic_bytes", true),
                 .flops = fields.number("flops", true),
                 .depth = fields.whole("depth", true),
                 .launches = fields.whole("launches", false),
                 .unknown_shapes = fields.whole("unknown_shapes", false)};
  if (card.batch == 0) fields.wrong("has a 'batch' of 0");
  read_lists(card, fields, status);
  const bool uncertain = fields.truth("uncertain");
  if (fields.find("uncertain", true) && uncertain != card.uncertain())
    fields.wrong("says another 'uncertain' than its operators, shapes and guesses do");
  if (const auto* job = fields.find("job", false)) card.job = read_job(*job, status);
  return card;
}

}  // namespace

Result<ModelCard> read_card(std::string_view text) {
  if (text.size() > kMaxCardBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("it has {} bytes; {} are the most", text.size(), kMaxCardBytes));
  if (is_too_deep(text)) return fail(ErrorCode::kInvalid, "it is nested too deep to be one");
  const json value = parse_json_or_discard<json>(text);
  if (value.is_discarded())
    return fail(ErrorCode::kInvalid,
                "it is no JSON; `tierctl model describe FILE.onnx -j` and "
                "tierpilot.describe() make cards");
  Status status;
  auto card = read_fields(value, status);
  if (!status) return tl::unexpected(status.error());
  return card;
}

}  // namespace tierpilot::sharing
