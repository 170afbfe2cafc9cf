// What tasks ask of the data plane: a request for each, from the decision until its data is let go
// of. A request waits in one line at a time, first come first served.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/large_pages.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/service.h"

namespace tierpilot::sim {

// One dataset of a request. Versions are those of the decision.
struct DataItem {
  uint32_t dataset;
  uint32_t version;
  bool write;
  bool joined = false;         // waited for another request's load
  Replica* replica = nullptr;  // a reader's pinned one
};

enum class ServingStep : uint8_t { kWaiting, kWorking, kServed, kSettling };

struct DataRequest {
  uint32_t task = 0;
  uint32_t node = 0;
  ServingStep step = ServingStep::kWaiting;
  bool admitted = false;
  bool room_taken = false;   // for the item under way
  bool writes_back = false;  // its victim, for which slow room is taken
  bool has_turn = false;     // to read from its source
  ServeHow how = ServeHow::kHit;
  uint32_t next = 0;        // the item under way
  int64_t loading_ns = 0;   // since when
  uint32_t behind = kNone;  // the next one in the line in which it waits
  uint32_t flow = kNone;
  uint32_t source = kNone;    // node that a fetch reads from, or waits for
  Replica* victim = nullptr;  // being written back or freed
  Replica* owned = nullptr;   // brought in, or copied from
  Service service;
  boost::container::small_vector<DataItem, 2> items;
};

// Of the item that is under way. Failed: there is no room for it, or nobody has its version.
enum class ItemProgress : uint8_t { kDone, kUnderWay, kFailed };

struct RequestLine {
  uint32_t first = kNone, last = kNone;
  bool empty() const { return first == kNone; }
};

class Requests {
 public:
  explicit Requests(size_t tasks) : of_task_(tasks, kNone) {}

  DataRequest& operator[](uint32_t id) { return requests_[id]; }
  const DataRequest& operator[](uint32_t id) const { return requests_[id]; }
  // Ids are below this; some are not in use.
  size_t size() const { return requests_.size(); }
  // kNone: the task has none.
  uint32_t of(uint32_t task) const { return of_task_[task]; }
  // A task has one at a time. References to others may not be good afterwards.
  DataRequest& open(uint32_t task, uint32_t node);
  void close(uint32_t id) {
    of_task_[requests_[id].task] = kNone;
    free_.push_back(id);
  }

  void enqueue(RequestLine& line, uint32_t id) {
    requests_[id].behind = kNone;
    (line.empty() ? line.first : requests_[line.last].behind) = id;
    line.last = id;
  }
  // Not of an empty line.
  uint32_t dequeue(RequestLine& line) {
    const uint32_t id = line.first;
    line.first = requests_[id].behind;
    return id;
  }
  // Whether it is there or not.
  void leave(RequestLine& line, uint32_t id);

  // The request may go on, when those before it have.
  void go_on(uint32_t id) { ready_.push_back(id); }
  void go_on(RequestLine& line) {
    while (!line.empty()) go_on(dequeue(line));
  }
  // It may not after all; not from within advance_ready().
  void stay(uint32_t id) { std::erase(ready_, id); }
  // Calls advance(id) with each that may, also with those that are added meanwhile.
  template <class Advance>
  void advance_ready(Advance advance) {
    for (size_t i = 0; i < ready_.size(); ++i) advance(ready_[i]);
    ready_.clear();
  }

  // Ask for memory that will be touched.
  void expect(uint32_t id) const { prefetch(requests_[id]); }
  void expect_task(uint32_t task) const { prefetch(of_task_[task]); }

 private:
  LargeVector<DataRequest> requests_;
  std::vector<uint32_t> free_;
  LargeVector<uint32_t> of_task_;
  std::vector<uint32_t> ready_;
};

}  // namespace tierpilot::sim
