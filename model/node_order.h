// What an operator wants of a node, beside that it runs tasks. Kept in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierpilot {

struct NodeOrder {
  // Stores have the number.
  enum class Kind {
    kNone,      // tasks as they come
    kCordoned,  // no new ones; those that it has go on
    kDrained,   // and those that have not ended at the deadline go to other nodes
  };
  static constexpr int64_t kKinds = 3;

  Kind kind = Kind::kNone;
  int64_t since_ms = 0;     // wall time
  int64_t deadline_ms = 0;  // wall time; of a drain
  std::string who;
};

// As it is given: "open", "cordon", "drain".
std::optional<NodeOrder::Kind> parse_node_order(std::string_view text);
// As it is shown: "open", "cordoned", "draining" while the node has tasks, "drained". A string
// literal.
const char* node_order_name(NodeOrder::Kind kind, bool has_tasks);

}  // namespace tierpilot
