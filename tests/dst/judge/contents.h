// Contents of datasets, as far as they matter: what each was made from and by whom.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "coordinator/model.h"
#include "tests/dst/judge/processes.h"

namespace tierpilot::dst {

using Digest = uint64_t;
inline ContentDigest checksum(Digest content) {
  return {0, content};
}

class Contents {
 public:
  // The same source gives the same content.
  Digest made(const std::string& dataset, uint64_t source);
  Digest written(Digest from, const Run& run);
  // For people: what it is.
  std::string origin(Digest content) const;
  bool descends(Digest content, Digest from) const;
  // From a source, and not by a task.
  bool was_made(const std::string& dataset, Digest content) const;

 private:
  struct Origin {
    Digest from = 0;
    std::string by;
  };
  std::map<Digest, Origin> origins_;
  std::map<std::pair<std::string, uint64_t>, Digest> made_;
};

}  // namespace tierpilot::dst
