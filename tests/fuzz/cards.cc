// Model cards that users pass on.
#include <nlohmann/json.hpp>

#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/card/model_card.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot::sharing;

FUZZ(card) {
  const auto card = read_card(bytes);
  if (!card) return;
  auto written = card_json(*card);
  written["schema"] = 1;
  const auto again = read_card(written.dump());
  tierpilot::fuzz::promise(again && card_json(*again) == card_json(*card),
                           "a card that is read and written is the same card");
}
