// Sizes, addresses and wishes as people write them.
#include "base/bytes.h"
#include "base/memory_wish.h"
#include "base/swap_tier_words.h"
#include "base/table/cell.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "rpc/address.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

FUZZ(words) {
  if (const auto size = parse_bytes(bytes))
    fuzz::promise(*size < uint64_t{9'000'000'000'000'000'000}, "sizes have an end");
  if (const auto wish = parse_memory_wish(bytes))
    fuzz::promise(wish->fast_weight >= 1 && wish->fast_weight <= 255, "weights are the kernel's");
  if (const auto tier = parse_swap_tier(bytes))
    fuzz::promise(tier->bytes >= kMiB, "tiers have room");
  if (const auto address = Address::parse(bytes))
    fuzz::promise(Address::parse(address->to_string()) == *address,
                  "an address that is read and written is the same address");
  (void)parse_time_ns(bytes);
}
