// How long it takes to bring tasks' data into the fast tiers of their nodes. Follows the daemon's
// pool (daemon/memory/pool) step by step:
//
//   serve() -> its pins fit -> a mover is free -> item by item: room, then hit, promotion or fetch
//   -> Client::served ... finish() -> the settler commits what was written -> Client::settled
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "base/large_pages.h"
#include "policies/sim/data/flows.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/service.h"

namespace tierpilot::sim {

class DataPlane {
 public:
  // Told from within the calls below; it must not call back.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void served(int64_t now_ns, uint32_t task, const Service& service) = 0;
    // `stale`: a newer version has been written since the task was given to its node.
    virtual void unserved(int64_t now_ns, uint32_t task, bool stale) = 0;
    // Not `committed`: there was no room for what it wrote.
    virtual void settled(int64_t now_ns, uint32_t task, bool committed) = 0;
    // The node has one more (`begins`) or one less of its movers' transfers under way. Gives how
    // many times as long as alone one takes that begins now.
    virtual double transfer(int64_t now_ns, uint32_t node, bool begins) = 0;
    // The node's free fast memory has changed.
    virtual void room_changed(uint32_t node) = 0;
  };

  DataPlane(const ClusterSpec& cluster, const Workload& workload, ReplicaStore& store,
            EventQueue& events, Client& client);

  // A task, an index into the workload, has one request at a time. Versions are those of now.
  void ask(uint32_t task, uint32_t node);
  // The node has the request of ask() and works on it.
  void serve(int64_t now_ns, uint32_t task);
  // The served task has ended: commits what it wrote, and lets go of the rest.
  void finish(int64_t now_ns, uint32_t task);
  // Lets go of everything at once; nothing more is told of it. What others at the node can do now
  // begins with resume().
  void abandon(int64_t now_ns, uint32_t task);
  void resume(int64_t now_ns, uint32_t node);
  // What is read from the node must be read elsewhere; its own requests have been abandoned.
  void source_failed(int64_t now_ns, uint32_t node);
  // Ask for memory that a coming event will touch, step by step.
  void expect_task(uint32_t task) const { prefetch(request_of_[task]); }
  void expect_request(uint32_t task, uint32_t node) const;
  void expect_admission(uint32_t task) const;
  void expect_data(uint32_t task) const;
  void expect_flow(uint32_t flow, Soon soon) const;
  // True: a flow has ended; false: it still has to wait.
  bool flow_event(const Event& event);

 private:
  enum class Step : uint8_t { kWaiting, kWorking, kServed, kSettling };
  enum class Progress { kDone, kUnderWay, kFailed };

  struct Item {
    uint32_t dataset;
    uint32_t version;
    bool write;
    bool joined = false;         // waited for another request's load
    Replica* replica = nullptr;  // a reader's pinned one
  };
  struct Request {
    uint32_t task = 0;
    uint32_t node = 0;
    Step step = Step::kWaiting;
    bool admitted = false;
    bool room_taken = false;   // for the item under way
    bool writes_back = false;  // its victim, for which slow room is taken
    bool has_turn = false;     // to read from its source
    ServeHow how = ServeHow::kHit;
    uint32_t next = 0;        // the item under way
    int64_t loading_ns = 0;   // since when
    uint32_t behind = kNone;  // the next one in the list in which it waits
    uint32_t flow = kNone;
    uint32_t source = kNone;    // node that a fetch reads from, or waits for
    Replica* victim = nullptr;  // being written back or freed
    Replica* owned = nullptr;   // brought in, or copied from
    Service service;
    boost::container::small_vector<Item, 2> items;
  };
  // Requests, first come first served. A request waits in one list at a time.
  struct Waiting {
    uint32_t first = kNone, last = kNone;
    bool empty() const { return first == kNone; }
  };
  enum Resource : uint32_t { kSlowRead, kSlowWrite, kMemory, kUplink, kDownlink };
  struct Kind {
    uint32_t movers, readers;
    // What could pass in the time that a transfer takes beside its bytes.
    double promote_start_bytes, evict_start_bytes, link_start_bytes;
    // Of each byte that is freed: so many could be written back, or copied, in that time.
    double freed_as_written, freed_as_copied;
  };
  struct alignas(64) Node {
    uint32_t kind = 0;
    uint32_t first_link = 0;
    uint32_t movers_busy = 0;
    uint32_t transfers = 0;  // flows of its movers
    uint32_t turns = 0;      // that others have to read from it
    Waiting for_pins, for_mover, for_idle, for_settler;
    Waiting for_turn;  // requests of other nodes
    bool settler_busy = false;

    uint32_t link(Resource resource) const { return first_link + resource; }
  };

  void expect_data_of(uint32_t request) const;
  uint32_t new_request();
  void free_request(uint32_t id);
  void enqueue(Waiting& list, uint32_t id);
  uint32_t dequeue(Waiting& list);
  void leave(Waiting& list, uint32_t id);
  const Kind& kind(const Node& node) const { return kinds_[node.kind]; }
  bool admit(Request& request);
  // Admits and begins what has become possible at a node.
  void begin_possible(uint32_t node);
  void advance(uint32_t id);
  Progress read(uint32_t id, Item& item);
  Progress copy_for_writing(uint32_t id, Item& item);
  Progress make_room(uint32_t id, uint64_t bytes);
  Progress evict(uint32_t id, Replica& victim);
  Progress load(uint32_t id, const Item& item);
  Progress fetch(uint32_t id, const Item& item);
  Progress fetch_from(uint32_t id, const Replica& source);
  bool has_turn_left(uint32_t node) const {
    return nodes_[node].turns < kind(nodes_[node]).readers;
  }
  void give_turn(uint32_t id, uint32_t node);
  void pass_turn(Request& request);
  void send_to_copy(uint32_t source, uint32_t copy, const Item& item);
  Progress wait_idle(uint32_t id);
  void end_transfer(uint32_t node);
  void start_flow(uint32_t id, double bytes, std::initializer_list<uint32_t> links);
  void evicted(Request& request);
  void loaded(Request& request);
  void count(Request& request, ServeHow how, uint64_t bytes, int64_t took_ns);
  void release_owned(Request& request);
  void end_serving(Request& request);
  void unserved(uint32_t id, bool stale);
  // Gives back pins, room and files.
  void let_go(Request& request);
  void settle_next(uint32_t node);
  void settled(uint32_t id, bool committed);
  void wake_idle(Node& node);
  void run_ready();

  const Workload& workload_;
  ReplicaStore& store_;
  Flows flows_;
  Client& client_;
  std::vector<Kind> kinds_;  // one of each group
  LargeVector<Node> nodes_;
  LargeVector<Request> requests_;
  std::vector<uint32_t> free_;
  LargeVector<uint32_t> request_of_;  // by task
  std::vector<uint32_t> ready_;       // requests that may go on, one after the other
  int64_t now_ns_ = 0;
};

}  // namespace tierpilot::sim
