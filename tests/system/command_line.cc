#include "tests/system/command_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text/json_text.h"

namespace tierpilot::test {

Json parse(const std::string& text) {
  auto json = parse_json_or_discard<Json>(text);
  EXPECT_FALSE(json.is_discarded()) << "no JSON: " << text;
  return json.is_discarded() ? Json::object() : json;
}

Outcome tierctl_at(const std::string& address, Argv arguments) {
  arguments.insert(arguments.begin(), program("TIERPILOT_TEST_TIERCTL"));
  return run_command(arguments, {{"TIERPILOT_COORDINATOR", address}});
}

Json tierctl_json(const std::string& address, const Argv& arguments) {
  Argv all{"-j"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto answer = tierctl_at(address, all);
  EXPECT_EQ(answer.code, 0) << answer.err;
  return parse_json_or_discard<Json>(answer.out);
}

uint64_t submitted_id(const Outcome& answer) {
  EXPECT_EQ(answer.code, 0) << answer.err;
  const auto json = parse_json_or_discard<Json>(answer.out);
  return json.is_object() ? json["tasks"][0]["id"].get<uint64_t>() : 0;
}

Json shown(Client& client, uint64_t id) {
  auto task = client.show(id);
  EXPECT_TRUE(task) << task.error().message;
  return task ? *task : Json();
}

std::string python_path() {
  return fmt::format("PYTHONPATH={}/python", std::getenv("TIERPILOT_TEST_SOURCE"));
}

uint64_t submit_python(const std::string& address, const std::vector<std::string>& options,
                       const std::string& text, const std::vector<std::string>& arguments) {
  std::vector<std::string> line{"-j", "task", "submit", "--env", python_path()};
  line.insert(line.end(), options.begin(), options.end());
  line.insert(line.end(), {"--", "/usr/bin/python3", "-c", text});
  line.insert(line.end(), arguments.begin(), arguments.end());
  return submitted_id(tierctl_at(address, line));
}

void expect_json_error(const Outcome& outcome, int code, const std::string& word) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto json = parse(outcome.err);
  EXPECT_EQ(json.value("schema", 0), 1);
  const auto message = json.value("/error/message"_json_pointer, std::string());
  EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is not in: " << outcome.err;
}

}  // namespace tierpilot::test
