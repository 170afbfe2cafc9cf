#include "daemon/memory/pool/pool_state.h"

#include <fmt/format.h>

#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {
namespace {

std::vector<PrivateCopy> private_copies(const Request& request, size_t served_items) {
  std::vector<PrivateCopy> copies;
  for (size_t i = 0; i < served_items; ++i)
    if (const auto& item = request.items[i]; item.write)
      copies.push_back({request.owner, item.name, item.version, item.bytes});
  return copies;
}

Error end_reason(bool closing, const std::string& owner) {
  if (closing) return {ErrorCode::kUnavailable, "the dataset pool is closing"};
  return {ErrorCode::kConflict, fmt::format("serving '{}' was cancelled", owner)};
}

void count(ServiceTotals& totals, const Served& served) {
  for (const auto& item : served.items) {
    totals.hits += item.how == ServeHow::kHit;
    totals.promotions += item.how == ServeHow::kPromotion;
    totals.fetches += item.how == ServeHow::kFetch;
  }
  totals.hit_bytes += served.local_bytes;
  totals.promoted_bytes += served.promoted_bytes;
  totals.fetched_bytes += served.fetched_bytes;
  totals.service_ns.add(static_cast<uint64_t>(served.service_ns));
}

}  // namespace

void Pool::State::run(Workers& threads, std::function<void()> job) {
  threads.add([this, job = std::move(job)] {
    job();
    after_job();
  });
}

void Pool::State::after_job() {
  manager->doomed.sweep();
  {
    std::lock_guard lock(mutex);
    admit_waiting();
  }
  outbox->flush();
}

void Pool::State::accept(std::shared_ptr<Request> request) {
  std::lock_guard lock(mutex);
  request->received_ns = now_ns();
  auto status = manager->admission.check_fits(request->items);
  if (status) status = requests.accept(request);
  if (!status) {
    ++totals.failed_requests;
    return complete(request->done, Result<Served>(tl::unexpected(status.error())));
  }
  requests.waiting.push_back(std::move(request));
  admit_waiting();
}

void Pool::State::admit_waiting() {
  while (!closing && !requests.waiting.empty()) {
    const auto request = requests.waiting.front();
    const auto admitted = manager->admission.admit(request->items);
    if (!admitted) {
      fail_request(request, admitted.error());
      continue;
    }
    if (!*admitted) return;
    requests.waiting.pop_front();
    request->phase = Request::Phase::kRunning;
    run(movers, [this, request] { serve(request); });
  }
}

void Pool::State::fail_request(const std::shared_ptr<Request>& request, const Error& error) {
  ++totals.failed_requests;
  complete(request->done, Result<Served>(tl::unexpected(error)));
  requests.erase(request);
}

void Pool::State::serve(const std::shared_ptr<Request>& request) {
  Served served;
  served.queued_ns = now_ns() - request->received_ns;
  Status status;
  for (const auto& item : request->items)
    if (status) status = serve_item(*request, item, served);
  if (status) {
    std::lock_guard lock(mutex);
    if (!request->cancel) {
      served.service_ns = now_ns() - request->received_ns;
      request->phase = Request::Phase::kServed;
      count(totals, served);
      return complete(request->done, Result<Served>(std::move(served)));
    }
  }
  const size_t done_items = served.items.size();
  for (const auto& copy : private_copies(*request, done_items))
    manager->private_copies.discard(copy);
  for (size_t i = 0; i < request->items.size(); ++i)
    if (i >= done_items || !request->items[i].write) manager->admission.unpin(request->items[i]);
  std::lock_guard lock(mutex);
  fail_request(request, request->cancel ? end_reason(closing, request->owner) : status.error());
}

Status Pool::State::serve_item(const Request& request, const ServeItem& item, Served& served) {
  const int64_t start_ns = now_ns();
  EvictionTally tally;
  auto result = item.write
                    ? manager->loader.copy_for_writing(request.owner, item, request.cancel, tally)
                    : manager->loader.load(item, request.cancel, tally);
  served.evicted_bytes += tally.bytes;
  served.evicted_written_bytes += tally.written_bytes;
  served.evict_ns += tally.ns;
  if (!result) return tl::unexpected(result.error());
  result->service_ns = now_ns() - start_ns;
  (result->how == ServeHow::kHit         ? served.local_bytes
   : result->how == ServeHow::kPromotion ? served.promoted_bytes
                                         : served.fetched_bytes) += result->bytes;
  if (result->how == ServeHow::kPromotion) served.promote_ns += result->transfer_ns;
  if (result->how == ServeHow::kFetch) served.fetch_ns += result->transfer_ns;
  served.items.push_back(std::move(*result));
  return {};
}

void Pool::State::cancel(const std::string& owner) {
  std::lock_guard lock(mutex);
  const auto request = requests.find(owner);
  if (!request) return;
  if (request->phase == Request::Phase::kRunning) {
    request->cancel = true;
    manager->holdings.wake();
  } else if (request->phase == Request::Phase::kWaiting) {
    fail_request(request, end_reason(false, owner));
    admit_waiting();  // those behind it may be smaller
  }
}

void Pool::State::begin_finish(const std::string& owner, bool success, FinishDone done) {
  std::lock_guard lock(mutex);
  const auto request = requests.find(owner);
  if (!request || request->phase != Request::Phase::kServed) {
    const auto code = request ? ErrorCode::kConflict : ErrorCode::kNotFound;
    const auto why =
        request ? "is not served (cancel it) or is being finished" : "holds no datasets";
    return complete(done, Committed(fail(code, fmt::format("owner '{}' {}", owner, why))));
  }
  request->phase = Request::Phase::kFinishing;
  run(settler,
      [this, request, success, done = std::move(done)] { finish(request, success, done); });
}

void Pool::State::finish(const std::shared_ptr<Request>& request, bool success,
                         const FinishDone& done) {
  Committed result;
  const auto copies = private_copies(*request, request->items.size());
  if (success)
    result = manager->private_copies.commit(copies);
  else
    for (const auto& copy : copies) manager->private_copies.discard(copy);
  for (const auto& item : request->items)
    if (!item.write) manager->admission.unpin(item);
  manager->doomed.sweep();
  std::lock_guard lock(mutex);
  requests.erase(request);
  complete(done, std::move(result));
}

void Pool::State::close() {
  {
    std::lock_guard lock(mutex);
    closing = true;
    while (!requests.waiting.empty()) {
      const auto request = requests.waiting.front();
      fail_request(request, end_reason(true, request->owner));
    }
    for (const auto& [owner, request] : requests.all()) request->cancel = true;
    manager->holdings.wake();
  }
  // In this order: a completion may finish its request.
  movers.stop();
  keepers.stop();
  settler.stop();
}

}  // namespace tierpilot
