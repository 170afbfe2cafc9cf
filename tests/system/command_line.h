// tierctl as scripts use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/system/client.h"
#include "tests/system/process.h"

namespace tierpilot::test {

// An object; a failure of the test where the text is no JSON.
Json parse(const std::string& text);
// With that coordinator's address in its environment.
Outcome tierctl_at(const std::string& address, Argv arguments);
// What it says with -j; a failure of the test where it fails.
Json tierctl_json(const std::string& address, const Argv& arguments);
// Of the one task that was submitted with -j; a failure of the test, and 0, where it was refused.
uint64_t submitted_id(const Outcome& answer);
// The task as `tierctl task show -j` has it; a failure of the test, and null, where it is unknown.
Json shown(Client& client, uint64_t id);
// NAME=VALUE with which /usr/bin/python3 finds the module tierpilot of the source tree.
std::string python_path();
// Of one task, which runs this text with /usr/bin/python3; its id as of submitted_id().
uint64_t submit_python(const std::string& address, const std::vector<std::string>& options,
                       const std::string& text, const std::vector<std::string>& arguments);
// Of a command with -j: nothing on stdout, an error on stderr whose message has the word.
void expect_json_error(const Outcome& outcome, int code, const std::string& word);

}  // namespace tierpilot::test
