// Configuration files.
#include "base/config.h"
#include "daemon/config.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

FUZZ(node_config) {
  auto reader = ConfigReader::parse(bytes, "node.toml");
  if (!reader) return;
  const auto config = read_config(
      std::move(*reader),
      {.hostname = "n1", .cpus = {0, 1}, .memory_bytes = uint64_t{1} << 34, .numa_nodes = {0}});
  if (config) fuzz::promise(config->units > 0 && !config->cpus.empty(), "a node has units");
}
