#include "tests/fuzz/harness.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/input_limits.h"

namespace tierpilot::fuzz {
namespace {

const Harness* first = nullptr;

const Harness& named(const char* name) {
  for (const auto* each = first; name && each; each = each->next)
    if (std::strcmp(each->name, name) == 0) return *each;
  std::fprintf(stderr, "no harness '%s'; there are:", name ? name : "");
  for (const auto* each = first; each; each = each->next) std::fprintf(stderr, " %s", each->name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

Harness::Harness(const char* named, Run runs) : name(named), run(runs), next(first) {
  first = this;
}

std::string file_of(std::string_view bytes) {
  static const int file = memfd_create("input", MFD_CLOEXEC);
  promise(ftruncate(file, 0) == 0 &&
              pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "memory for a file");
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace tierpilot::fuzz

using namespace tierpilot::fuzz;

// Which one: a fuzzer has arguments of its own.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& harness = named(std::getenv("FUZZ"));
  harness.run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef TIERPILOT_LIBFUZZER
// Runs each file of the folders given, or of CORPUS/NAME of each harness.
namespace {

size_t replay(const Harness& harness, const std::filesystem::path& folder) {
  size_t inputs = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const InputLimits limits(harness.name, file.path().string());
    harness.run(bytes);
    ++inputs;
  }
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--corpus") == 0) {
    size_t inputs = 0;
    for (const auto* each = first; each; each = each->next)
      inputs += replay(*each, std::filesystem::path(argv[2]) / each->name);
    std::printf("%zu inputs\n", inputs);
    return 0;
  }
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s --corpus FOLDER | NAME FOLDER...\n", argv[0]);
    return 2;
  }
  for (int i = 2; i < argc; ++i) replay(named(argv[1]), argv[i]);
}
#endif
