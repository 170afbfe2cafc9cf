// Events of a daemon that count once, however often it tells them: it does so until it hears that
// they are on disk. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"

namespace tierpilot {

class HeardEvents {
 public:
  using Written = std::function<void(const Status&)>;

  // Of news: what to call once they are written. Of what was heard before, nothing: `written` is
  // called when that is, at once where it was.
  Written hear(uint64_t sequence, Written written);

 private:
  struct Write {
    bool is_open = true;
    std::vector<Written> waiting;
  };
  uint64_t last_ = 0;  // the highest number of those that its daemon has told
  std::map<uint64_t, std::shared_ptr<Write>> writes_;  // by number; those that are open, at least
};

}  // namespace tierpilot
