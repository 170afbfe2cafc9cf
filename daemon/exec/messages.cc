#include "daemon/exec/messages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace nlohmann {

template <class T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& out, const std::optional<T>& value) {
    out = value ? json(*value) : json(nullptr);
  }
  static void from_json(const json& in, std::optional<T>& value) {
    value = in.is_null() ? std::nullopt : std::optional<T>(in.get<T>());
  }
};

template <>
struct adl_serializer<tierpilot::TaskEnd> {
  static void to_json(json& out, tierpilot::TaskEnd how) { out = static_cast<int>(how); }
  static void from_json(const json& in, tierpilot::TaskEnd& how) {
    const int number = in.get<int>();
    if (number < 0 || number >= tierpilot::kTaskEnds) throw std::out_of_range("TaskEnd");
    how = static_cast<tierpilot::TaskEnd>(number);
  }
};

template <>
struct adl_serializer<tierpilot::ErrorCode> {
  static void to_json(json& out, tierpilot::ErrorCode code) {
    out = std::string(tierpilot::error_code_name(code));
  }
  static void from_json(const json& in, tierpilot::ErrorCode& code) {
    code = tierpilot::error_code_from_name(in.get<std::string>());
  }
};

}  // namespace nlohmann

namespace tierpilot {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskUser, uid, gid, groups, reserved)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskLaunch, task_id, attempt, argv, env, working_directory,
                                   log_directory, cpus, memory_nodes, interleave_memory,
                                   memory_limit_bytes, swap_memory_bytes, time_limit_ms,
                                   keep_success, user, given, given_folders)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StopTask, task_id, attempt, grace_ms, how)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StandStill, task_id, attempt, still)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpenFile, task_id, attempt, request, path)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileOpened, request, code, fault)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskCleared, task_id, attempt, left)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LeaseExtension, deadline_boot_ns, asked_boot_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskStarted, task_id, attempt, pid, boot_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessExit, task_id, attempt, how, exit_code, signal,
                                   node_fault, reason, started_boot_ns, wall_ms, cpu_user_ns,
                                   cpu_system_ns, max_rss_bytes, cgroup_peak_bytes, read_bytes,
                                   written_bytes)

namespace {

// from_cbor() recurses once per nesting level without a limit: 200 kB of array heads would overflow
// the stack. Stopping at the SAX interface stops the recursion.
class ShallowReader : public nlohmann::detail::json_sax_dom_parser<json> {
 public:
  using json_sax_dom_parser::json_sax_dom_parser;
  // No message has one; what is too large for a whole number would be undefined there.
  bool number_float(number_float_t, const string_t&) { return false; }
  bool start_array(size_t elements) {
    return ++depth_ <= kMaxDepth && json_sax_dom_parser::start_array(elements);
  }
  bool start_object(size_t elements) {
    return ++depth_ <= kMaxDepth && json_sax_dom_parser::start_object(elements);
  }
  bool end_array() {
    --depth_;
    return json_sax_dom_parser::end_array();
  }
  bool end_object() {
    --depth_;
    return json_sax_dom_parser::end_object();
  }

 private:
  static constexpr int kMaxDepth = 8;
  int depth_ = 0;
};

template <size_t I = 0>
ExecMessage alternative(size_t kind, const json& body) {
  if constexpr (I == std::variant_size_v<ExecMessage>) {
    throw std::out_of_range("message kind");
  } else {
    if (kind == I) return body.get<std::variant_alternative_t<I, ExecMessage>>();
    return alternative<I + 1>(kind, body);
  }
}

}  // namespace

Result<std::vector<uint8_t>> encode(const ExecMessage& message) {
  const json body = std::visit([](const auto& value) { return json(value); }, message);
  auto bytes = json::to_cbor(json::array({message.index(), body}));
  if (bytes.size() > kMaxMessageBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("command, environment and paths take {} bytes; the limit is {}",
                            bytes.size(), kMaxMessageBytes));
  return bytes;
}

Result<ExecMessage> decode(std::span<const uint8_t> bytes) {
  if (bytes.size() > kMaxMessageBytes)
    return fail(ErrorCode::kInvalid, "executor message: larger than the limit");
  try {
    json message;
    ShallowReader reader(message, true);
    if (!json::sax_parse(bytes.begin(), bytes.end(), &reader, json::input_format_t::cbor))
      return fail(ErrorCode::kInvalid, "executor message: nested too deeply, or with a fraction");
    return alternative(message.at(0).get<size_t>(), message.at(1));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalid, fmt::format("executor message: {}", error.what()));
  }
}

}  // namespace tierpilot
