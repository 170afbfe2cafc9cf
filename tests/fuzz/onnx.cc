// Models that users pass on.
#include <nlohmann/json.hpp>

#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/card/onnx_model.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot::sharing;

FUZZ(onnx) {
  const auto card = describe_onnx(bytes, "model", std::nullopt);
  if (!card) return;
  auto written = card_json(*card);
  written["schema"] = 1;
  tierpilot::fuzz::promise(bool(read_card(written.dump())), "a card that is made can be read");
}
