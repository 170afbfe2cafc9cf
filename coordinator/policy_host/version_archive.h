// The last versions of learned weights, on disk, each with where it comes from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/learning/confidence.h"

namespace tierpilot {

struct WeightsVersion {
  uint64_t number = 0;  // rising, never used twice for a policy; 0: not kept yet
  int64_t at_ms = 0;    // wall time
  std::string why;      // it was kept
  uint64_t experiences = 0;
  uint64_t batches = 0;
  uint64_t weights_version = 0;  // as decisions name it
  // What its decisions had earned when it was kept; count 0: nothing was measured.
  MeanInterval reward;
  MeanInterval response;
  std::string origin;  // what its learning began from; empty: an earlier program kept it
};

// Two files a version in "<policy>.versions/": "<number>.weights", then "<number>.about". A version
// is there when its second file is. Not thread-safe.
class VersionArchive {
 public:
  // Keeps at most `keep` versions of a policy. An empty folder: none are kept.
  VersionArchive(std::filesystem::path folder, size_t keep);

  // Reads what is there. Files that are damaged are named in the log and left out.
  Status open(const std::string& policy);
  // Oldest first.
  std::vector<WeightsVersion> list(const std::string& policy) const;
  // Writes a version under the next number, which is set in what comes back, and drops the oldest.
  Result<WeightsVersion> add(const std::string& policy, WeightsVersion version,
                             std::string_view weights);
  // kNotFound names those that are there.
  Result<std::string> weights(const std::string& policy, uint64_t number) const;

 private:
  std::filesystem::path file(const std::string& policy, uint64_t number, const char* kind) const;
  void drop_oldest(const std::string& policy);

  std::filesystem::path folder_;
  size_t keep_;
  std::map<std::string, std::map<uint64_t, WeightsVersion>> versions_;
  std::map<std::string, uint64_t> last_number_;
};

}  // namespace tierpilot
