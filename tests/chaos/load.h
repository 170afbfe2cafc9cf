// Work under faults: requests that are repeated until they are answered, and what must be true of
// them in the end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/chaos/writers.h"
#include "tests/system/client.h"
#include "tests/system/journal.h"

namespace tierpilot::chaos {

class Load {
 public:
  Load(std::string address, const test::Journal& journal)
      : address_(address), client_(std::move(address)), journal_(journal), writers_(journal) {}

  // The datasets that it writes.
  Status prepare();

  // A few requests, those without an answer first. Errors of the way are no errors.
  void submit_some();
  // Until every request has its answer and every task has ended, and all data was looked at; what
  // was wrong, a line each.
  std::vector<std::string> settle();

  size_t acknowledged() const { return acknowledged_.size(); }
  size_t runs() const { return runs_; }
  size_t repeated() const { return repeated_; }
  size_t written() const { return writers_.written(); }
  size_t gangs() const { return gangs_.size(); }

 private:
  void note(const std::vector<test::Request>& requests,
            const std::vector<Result<test::Submitted>>& answers);
  bool reconnect();
  void check_task(const std::string& request, uint64_t task);
  void check_journal();
  void check_runs(const test::Journal::Record& record, uint64_t task);
  void check_gang(const test::Journal::Record& record, uint64_t gang);

  void add_requests();
  void submit_open();

  const std::string address_;
  test::Client client_;
  const test::Journal& journal_;
  Writers writers_;
  bool connected_ = false;
  uint64_t made_ = 0;
  std::map<std::string, test::Request> open_;
  std::map<std::string, test::Submitted> acknowledged_;
  std::set<uint64_t> gangs_;
  std::vector<std::string> wrong_;
  size_t runs_ = 0, repeated_ = 0;
};

}  // namespace tierpilot::chaos
