// The pool's insides: admission, jobs and completions around the replica manager.
#pragma once

#include <memory>
#include <mutex>

#include "daemon/memory/pool/outbox.h"
#include "daemon/memory/pool/pool.h"
#include "daemon/memory/pool/replicas/replica_manager.h"
#include "daemon/memory/pool/requests.h"
#include "daemon/memory/pool/workers.h"

namespace tierpilot {

struct Pool::State {
  State(std::shared_ptr<Outbox> outbox, std::unique_ptr<ReplicaManager> manager, int threads)
      : outbox(std::move(outbox)),
        manager(std::move(manager)),
        movers(threads),
        keepers(threads),
        settler(1) {}

  // What the pool's methods do, but for flushing the outbox.
  void accept(std::shared_ptr<Request> request);
  void cancel(const std::string& owner);
  void begin_finish(const std::string& owner, bool success, FinishDone done);
  // Ends what waits, tells what runs to end, and finishes what is queued.
  void close();

  // Runs `job` on one of `threads`, then what it made possible: removals, admissions, callbacks.
  void run(Workers& threads, std::function<void()> job);
  void after_job();
  template <class Done, class Value>
  void complete(const Done& done, Value value) {
    outbox->add([done, value = std::move(value)] { done(value); });
  }

  // With the lock held: admits waiting requests in order, as far as there is room.
  void admit_waiting();
  // With the lock held: the request is over before it was served.
  void fail_request(const std::shared_ptr<Request>& request, const Error& error);

  // On a worker thread, without the lock.
  void serve(const std::shared_ptr<Request>& request);
  Status serve_item(const Request& request, const ServeItem& item, Served& served);
  void finish(const std::shared_ptr<Request>& request, bool success, const FinishDone& done);

  const std::shared_ptr<Outbox> outbox;
  const std::unique_ptr<ReplicaManager> manager;
  CancelFlag closing{false};

  std::mutex mutex;  // guards requests and totals; taken before the manager's
  Requests requests;
  ServiceTotals totals;

  // What gives room back has a thread of its own: movers may all be held up by other nodes.
  Workers movers;
  // So has what no task waits for, which may take for ever: files to import, other nodes.
  Workers keepers;
  Workers settler;
};

}  // namespace tierpilot
