// Which requests may be served now: those whose items can all be pinned.
#pragma once

#include <vector>

#include "daemon/memory/pool/replicas/holdings.h"

namespace tierpilot {

class ServeAdmission {
 public:
  explicit ServeAdmission(Holdings& holdings) : holdings_(holdings) {}

  // kInvalid if the items could not even be served on an empty node.
  Status check_fits(const std::vector<ServeItem>& items) const;
  // Pins all items, or none if their room is pinned by others (false). Never blocks. kInvalid: one
  // is here with another size.
  Result<bool> admit(const std::vector<ServeItem>& items);
  void unpin(const ServeItem& item);

 private:
  Holdings& holdings_;
};

}  // namespace tierpilot
