#include "tools/trainer/place.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace tierpilot::trainer {
namespace {

constexpr uint64_t kMostRanks = 65'536;

std::string_view text_of(const Variables& variables, const char* name) {
  const char* value = variables(name);
  return value ? value : "";
}

Result<uint64_t> number_of(const Variables& variables, const char* name, uint64_t least,
                           uint64_t most) {
  const auto text = text_of(variables, name);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least && number <= most)
    return number;
  return fail(ErrorCode::kInvalid,
              fmt::format("the variable {} is '{}', but with WORLD_SIZE it must be a number from "
                          "{} to {}: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each "
                          "rank, or none of them",
                          name, text.substr(0, 64), least, most));
}

}  // namespace

Result<Place> place_of(const Variables& variables) {
  Place place;
  if (text_of(variables, "WORLD_SIZE").empty()) return place;
  const auto world = number_of(variables, "WORLD_SIZE", 1, kMostRanks);
  if (!world) return tl::unexpected(world.error());
  const auto rank = number_of(variables, "RANK", 0, *world - 1);
  if (!rank) return tl::unexpected(rank.error());
  place.world = static_cast<uint32_t>(*world);
  place.rank = static_cast<uint32_t>(*rank);
  if (place.alone()) return place;
  const auto port = number_of(variables, "MASTER_PORT", 1, 65'535);
  if (!port) return tl::unexpected(port.error());
  place.master_port = static_cast<uint16_t>(*port);
  place.master_host = text_of(variables, "MASTER_ADDR");
  place.network_interface = text_of(variables, "GLOO_SOCKET_IFNAME");
  if (place.master_host.empty())
    return fail(ErrorCode::kInvalid,
                "the variable MASTER_ADDR is not set: it must be the host where rank 0 listens");
  return place;
}

}  // namespace tierpilot::trainer
