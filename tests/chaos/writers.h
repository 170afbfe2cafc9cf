// Tasks that count in datasets, one more each: what a dataset says in the end is how many have
// succeeded in writing it, or a write was lost.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/system/client.h"
#include "tests/system/journal.h"

namespace tierpilot::chaos {

class Writers {
 public:
  explicit Writers(const test::Journal& journal) : journal_(journal) {}

  Status make_datasets(test::Client& client);
  // Writes one of them after the other.
  test::TaskPlan next();
  // It was acknowledged, so that it has to succeed once.
  void acknowledged(const test::TaskPlan& writer) { ++writes_[writer.datasets.at(0).first]; }
  // Once all have ended: every dataset is there, undamaged, and made from all writes; what is
  // wrong.
  std::vector<std::string> check(test::Client& client, const std::string& address) const;
  size_t written() const;

  // The node whose writer was the last one that has ended; its commit begins.
  static std::optional<std::string> last_end(const std::filesystem::path& journal_folder);

 private:
  std::string check_one(test::Client& client, const std::string& dataset) const;

  const test::Journal& journal_;
  uint64_t made_ = 0;
  std::map<std::string, size_t> writes_;  // by dataset
};

}  // namespace tierpilot::chaos
