// What the kernel and a node's own processes tell it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/sysroot.h"
#include "base/text/json_text.h"
#include "daemon/agent/paging/process_scan.h"
#include "daemon/exec/messages.h"
#include "daemon/memory/heat/address_space.h"
#include "daemon/memory/heat/numa_maps.h"
#include "daemon/probe/active/json.h"
#include "daemon/topology/uevent.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

FUZZ(kernel_text) {
  if (const auto ids = parse_id_list(bytes)) {
    fuzz::promise(ids->size() <= 2 * 65'536, "ids are few");
    const auto again = parse_id_list(format_id_list(*ids));
    fuzz::promise(again && *again == *ids, "ids that are read and written are the same");
  }
  if (const auto process = agent::parse_process_stat(bytes))
    fuzz::promise(process->resident_bytes % 4096 == 0, "what is resident are pages");
  (void)parse_uevent(bytes);
}

FUZZ(numa_maps) {
  if (const auto mappings = parse_numa_maps(bytes))
    for (const auto& mapping : *mappings)
      fuzz::promise(!mapping.pages_on_node.empty() && mapping.page_bytes >= 1024,
                    "mappings have pages");
}

FUZZ(smaps) {
  const auto mappings = parse_smaps(bytes);
  if (!mappings) return;
  uint64_t last = 0;
  for (const auto& mapping : *mappings) {
    fuzz::promise(mapping.start >= last && mapping.start < mapping.end,
                  "mappings are sorted and disjoint");
    last = mapping.end;
  }
  last = 0;
  for (const auto& range : trackable_ranges(*mappings, {.min_bytes = 0, .file_backed = true})) {
    fuzz::promise(range.start >= last && range.start < range.end, "ranges are too");
    last = range.end;
  }
}

FUZZ(exec_message) {
  const auto message =
      decode(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  if (!message) return;
  const auto written = encode(*message);
  if (!written) return;  // shorter forms of CBOR may become longer than the limit
  const auto again = decode(*written);
  fuzz::promise(again && encode(*again).value() == *written,
                "a message that is read and written is the same");
}

// What a probe's server and its owner tell each other.
FUZZ(probe_json) {
  try {
    const auto json = parse_json<nlohmann::json>(bytes);
    if (json.contains("rounds") && json.contains("timeout_ms")) (void)options_from_json(json);
    const auto written = measurement_to_json(measurement_from_json(json)).dump();
    const auto again =
        measurement_to_json(measurement_from_json(parse_json<nlohmann::json>(written))).dump();
    fuzz::promise(again == written, "a measurement that is read and written is the same");
  } catch (const nlohmann::json::exception&) {
  }
}
