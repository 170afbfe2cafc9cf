// Operator logs for the tests of swapping.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "policies/swap/readers.h"

namespace tierpilot::swap {

// The worked example of the DTR rules: aliases, a copy, an operator in place.
inline constexpr const char* kExampleLog = R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"400"}
{"INSTRUCTION":"CALL","NAME":"mix","ARGS":["w"],"RESULT":["h","m"],"TIME":"50"}
{"INSTRUCTION":"MEMORY","NAME":"h","MEMORY":"2000"}
{"INSTRUCTION":"ALIAS","NAME":"h","ALIAS":"-1"}
{"INSTRUCTION":"MEMORY","NAME":"m","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"m","ALIAS":"-1"}
{"INSTRUCTION":"CALL","NAME":"flat","ARGS":["h"],"RESULT":["v"],"TIME":"2"}
{"INSTRUCTION":"MEMORY","NAME":"v","MEMORY":"2000"}
{"INSTRUCTION":"ALIAS","NAME":"v","ALIAS":"0"}
{"INSTRUCTION":"RELEASE","NAME":"h"}
{"INSTRUCTION":"COPY","DST":"k","SRC":"v"}
{"INSTRUCTION":"MUTATE","NAME":"shift_","ARGS":["v","w"],"MUTATE":[0],"TIME":"30"}
{"INSTRUCTION":"ANNOTATE","ANNOTATION":"BACKWARD"}
{"INSTRUCTION":"CALL","NAME":"down","ARGS":["k","m"],"RESULT":["g"],"TIME":"90"}
{"INSTRUCTION":"MEMORY","NAME":"g","MEMORY":"400"}
{"INSTRUCTION":"ALIAS","NAME":"g","ALIAS":"-1"}
{"INSTRUCTION":"RELEASE","NAME":"k"}
{"INSTRUCTION":"RELEASE","NAME":"m"}
)";

// A file with this text that goes with it.
class TextFile {
 public:
  explicit TextFile(const std::string& text) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("swap-" + std::to_string(getpid()) + "-" + std::to_string(++count));
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline Result<Graph> read_dtr_text(const std::string& text) {
  return read_dtr_log(TextFile(text).path());
}

inline Graph example() {
  auto graph = read_dtr_text(kExampleLog);
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return graph ? *graph : Graph{};
}

}  // namespace tierpilot::swap
