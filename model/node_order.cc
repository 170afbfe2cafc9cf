#include "model/node_order.h"

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, NodeOrder::kKinds> kGiven{"open", "cordon", "drain"};
constexpr std::array<std::string_view, NodeOrder::kKinds> kShown{"open", "cordoned", "drained"};

}  // namespace

std::optional<NodeOrder::Kind> parse_node_order(std::string_view text) {
  return parse_in<NodeOrder::Kind>(kGiven, text);
}

const char* node_order_name(NodeOrder::Kind kind, bool has_tasks) {
  return kind == NodeOrder::Kind::kDrained && has_tasks ? "draining" : name_in(kShown, kind).data();
}

}  // namespace tierpilot
