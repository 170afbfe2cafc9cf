// What an operator wants of a node, beside that it runs tasks. Kept in the store.
#pragma once

#include <cstdint>
#include <string>

namespace tierpilot {

struct NodeOrder {
  enum class Kind {
    kNone,      // tasks as they come
    kCordoned,  // no new ones; those that it has go on
    kDrained,   // and those that have not ended at the deadline go to other nodes
  };
  Kind kind = Kind::kNone;
  int64_t since_ms = 0;     // wall time
  int64_t deadline_ms = 0;  // wall time; of a drain
  std::string who;
};

}  // namespace tierpilot
