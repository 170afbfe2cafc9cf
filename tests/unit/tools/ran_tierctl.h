// tierctl as a function: what it printed, and its exit code.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/text/json_text.h"

#include "tools/tierctl/tierctl.h"

namespace tierpilot {

struct Ran {
  int code;
  std::string out, err;
  nlohmann::json value() const { return parse_json<nlohmann::json>(out); }
};

inline Ran run(std::vector<std::string> words) {
  words.insert(words.begin(), "tierctl");
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const int code =
      tierctl::run(static_cast<int>(argv.size()), argv.data(), Output(false, out, err));
  return {code, out.str(), err.str()};
}

}  // namespace tierpilot
