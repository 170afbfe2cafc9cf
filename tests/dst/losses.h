// What is left of published versions, and which losses are nobody's fault.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/dst/node.h"

namespace tierpilot::dst {

class Losses {
 public:
  // `nodes` and `coordinator` live as long.
  Losses(Loop& loop, Judge& judge, const std::vector<std::unique_ptr<Node>>& nodes,
         Coordinator& coordinator)
      : loop_(loop), judge_(judge), nodes_(nodes), coordinator_(coordinator) {}

  // At every step.
  void check();
  // A damaged copy of it has gone.
  void damage_noticed(const DatasetId& id);
  void give_up_damaged();
  void lose_disk(Node& node, int64_t down_ns);
  // The only copy may have gone while the coordinator wrote down that it was there.
  void published(const std::string& dataset, uint32_t replicas, Digest content);

 private:
  bool is_left(const std::string& dataset, Digest content) const;
  bool is_held(const std::string& dataset, Digest content) const;
  // Good bytes of it on a disk.
  bool is_on_disk(const std::string& dataset, Digest content) const;

  Loop& loop_;
  Judge& judge_;
  const std::vector<std::unique_ptr<Node>>& nodes_;
  Coordinator& coordinator_;
  std::map<std::string, int64_t> disk_lost_ns_;               // by node
  using Contents = std::set<std::pair<std::string, Digest>>;  // of datasets
  // What was published last when one of its copies, or of what was made from it, was found damaged
  // or went with a disk, and others were left.
  Contents damaged_;
  Contents in_memory_;     // what is left there only, since the copies on disks were found damaged
  std::set<Digest> gone_;  // with a disk, which had the only copy
};

}  // namespace tierpilot::dst
