// tierctl as scripts use it.
#pragma once

#include <string>

#include "tests/system/client.h"
#include "tests/system/process.h"

namespace tierpilot::test {

// An object; a failure of the test where the text is no JSON.
Json parse(const std::string& text);
// With that coordinator's address in its environment.
Outcome tierctl_at(const std::string& address, Argv arguments);
// Of the one task that was submitted with -j; a failure of the test, and 0, where it was refused.
uint64_t submitted_id(const Outcome& answer);
// Of a command with -j: nothing on stdout, an error on stderr whose message has the word.
void expect_json_error(const Outcome& outcome, int code, const std::string& word);

}  // namespace tierpilot::test
