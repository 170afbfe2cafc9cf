// tierpilot_swap.h over a Session. Nothing may be thrown through it, and nothing happens in a child
// that was forked: its copy of the session has no threads.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/bytes.h"
#include "policies/swap/graph_builder.h"
#include "swap/describe.h"
#include "swap/device/process_memory.h"
#include "swap/plan_file.h"
#include "swap/session.h"
#include "swap/tierpilot_swap.h"
#include "swap/tiers/given.h"
#include "swap/tiers/tier_list.h"
#include "swap/warnings.h"

using namespace tierpilot;
using swap::Session;

struct tierpilot_swap {
  std::unique_ptr<Session> session;
  uint64_t forks;
  std::string plan_file{};
  std::string plans_refused{};  // why they are not used; empty: they are, or there were none
  swap::Warnings warnings{plans_refused, swap::warning_about(session->pool().tiers())};
};

namespace {

std::atomic<uint64_t> forks{0};

void count_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)once;
}

bool forked(const tierpilot_swap* swap) {
  return swap->forks != forks.load(std::memory_order_relaxed);
}

// What is out of memory in the library is a call that did nothing.
template <class Work, class Value>
Value guarded(const tierpilot_swap* swap, Value otherwise, const Work& work) {
  if (!swap || forked(swap)) return otherwise;
  try {
    return work(*swap->session);
  } catch (const std::exception&) {
    return otherwise;
  }
}

template <class Work>
void guarded(const tierpilot_swap* swap, const Work& work) {
  guarded(swap, 0, [&](Session& session) { return work(session), 0; });
}

// `host_bytes`: that the device itself takes of the host's memory.
Result<std::vector<swap::MeasuredTier>> wanted_tiers(const std::string& list,
                                                     swap::ComputeDevice& device, int workers,
                                                     int64_t host_bytes) {
  auto tiers = list.empty() ? swap::given_tiers(device, workers, host_bytes)
                            : swap::tiers_of(list, swap::pages_for(device));
  if (!tiers) return tl::unexpected(tiers.error());
  return swap::measured(std::move(*tiers), device);
}

// Memory that is pinned is one device's; else sessions that were given the same have it together.
Result<std::shared_ptr<swap::TierSet>> opened_tiers(const std::string& list,
                                                    swap::ComputeDevice& device, int workers,
                                                    int64_t host_bytes) {
  const auto open = [&] { return wanted_tiers(list, device, workers, host_bytes); };
  const char* const given = std::getenv("TIERPILOT_SWAP_TIERS");
  const auto name = fmt::format("{} of {}: {}", list, workers, list.empty() && given ? given : "");
  if (!device.runs_ahead()) return swap::tiers_of_process(name, open);
  auto tiers = open();
  if (!tiers) return tl::unexpected(tiers.error());
  return std::make_shared<swap::TierSet>(std::move(*tiers));
}

// Of a front end that was built with an earlier version, and knows of less.
Result<tierpilot_swap_settings> whole(const tierpilot_swap_settings& said) {
  constexpr size_t kFirstVersion = offsetof(tierpilot_swap_settings, device);
  tierpilot_swap_settings settings{};
  if (said.size < kFirstVersion)
    return fail(ErrorCode::kInvalid, "settings of another version of the library");
  std::memcpy(&settings, &said, std::min<size_t>(said.size, sizeof settings));
  return settings;
}

Result<std::unique_ptr<Session>> opened(const tierpilot_swap_settings& settings) {
  if (settings.budget_bytes < 0)
    return fail(ErrorCode::kInvalid,
                "the budget has to be above 0, or 0 for the one in TIERPILOT_SWAP_BUDGET");
  swap::SessionSettings made{.budget_bytes = settings.budget_bytes};
  if (settings.policy && *settings.policy) made.rule = settings.policy;
  std::string names;
  bool known = false;
  for (const auto& rule : swap::choice_rules()) {
    known = known || rule.name == made.rule;
    names += fmt::format(" {}", rule.name);
  }
  if (!known)
    return fail(ErrorCode::kInvalid,
                fmt::format("policy '{}' is not known; there are{}", made.rule, names));
  constexpr uint32_t kMostThreads = 64;
  if (settings.out_threads) made.threads.out = std::min(settings.out_threads, kMostThreads);
  if (settings.in_threads) made.threads.in = std::min(settings.in_threads, kMostThreads);
  auto device = swap::open_device(settings.device ? settings.device : "");
  if (!device) return tl::unexpected(device.error());
  if (!(*device)->runs_ahead()) swap::ProcessMemory::own_freed_memory();
  const int workers = swap::workers_of_this_program();
  if (made.budget_bytes == 0) {
    const auto given = swap::given_budget_bytes(**device, workers);
    if (!given) return tl::unexpected(given.error());
    made.budget_bytes = *given;
  }
  const int64_t host_bytes = (*device)->runs_ahead() ? 0 : made.budget_bytes;
  auto tiers = opened_tiers(settings.tiers ? settings.tiers : "", **device, workers, host_bytes);
  if (!tiers) return tl::unexpected(tiers.error());
  return std::make_unique<Session>(made, std::move(*device), std::move(*tiers));
}

// The program may go elsewhere before it is kept.
std::string absolute(const char* file) {
  return file && *file ? std::filesystem::absolute(file).string() : std::string();
}

void say(const std::string& what, char* text, size_t bytes) {
  if (!text || bytes == 0) return;
  const auto length = std::min(what.size(), bytes - 1);
  std::memcpy(text, what.data(), length);
  text[length] = 0;
}

tierpilot_swap_where where_of(Session::Where where) {
  switch (where) {
    case Session::Where::kHere:
      return TIERPILOT_SWAP_HERE;
    case Session::Where::kAway:
      return TIERPILOT_SWAP_AWAY;
    case Session::Where::kComing:
      return TIERPILOT_SWAP_COMING;
    case Session::Where::kLost:
      break;
  }
  return TIERPILOT_SWAP_LOST;
}

}  // namespace

tierpilot_swap* tierpilot_swap_open(const tierpilot_swap_settings* said, char* error,
                                    size_t error_bytes) {
  count_forks();
  try {
    const auto settings = whole(*said);
    auto session = settings ? opened(*settings) : tl::unexpected(settings.error());
    if (session) {
      const std::string plan_file = absolute(settings->plan_file);
      const auto status = plan_file.empty() ? Status{} : restore_plans(**session, plan_file);
      return new tierpilot_swap{std::move(*session), forks.load(), plan_file,
                                status ? "" : status.error().message};
    }
    say(session.error().message, error, error_bytes);
  } catch (const std::exception& failure) {
    say(failure.what(), error, error_bytes);
  }
  return nullptr;
}

void tierpilot_swap_close(tierpilot_swap* swap) {
  if (!swap) return;
  if (forked(swap)) (void)swap->session.release();  // its threads are the parent's
  delete swap;
}

int tierpilot_swap_keep(tierpilot_swap* swap, char* error, size_t error_bytes) {
  return guarded(swap, -1, [&](Session& session) {
    const auto status = swap->plan_file.empty() ? Status{} : keep_plans(session, swap->plan_file);
    if (!status) say(status.error().message, error, error_bytes);
    return status ? 0 : -1;
  });
}

void tierpilot_swap_begin(tierpilot_swap* swap) {
  guarded(swap, [](Session& session) { session.begin(); });
}

tierpilot_swap_id tierpilot_swap_save(tierpilot_swap* swap, const tierpilot_swap_storage* storage) {
  if (storage->bytes <= 0 || storage->bytes > swap::kMaxBytes || !storage->data) return 0;
  return guarded(swap, tierpilot_swap_id{0}, [&](Session& session) {
    if (storage->flags & TIERPILOT_SWAP_STATE)
      return session.save_state(storage->bytes, static_cast<const std::byte*>(storage->data),
                                storage->stream);
    return session.save(
        {.place = storage->place,
         .kind = storage->kind,
         .bytes = storage->bytes,
         .convolution_input = (storage->flags & TIERPILOT_SWAP_CONVOLUTION_INPUT) != 0},
        static_cast<const std::byte*>(storage->data), storage->stream,
        (storage->flags & TIERPILOT_SWAP_UNFINISHED) == 0);
  });
}

void tierpilot_swap_finished(tierpilot_swap* swap) {
  guarded(swap, [](Session& session) { session.finished(); });
}

const uint32_t* tierpilot_swap_news(tierpilot_swap* swap) {
  using News = std::atomic<uint32_t>;
  static_assert(sizeof(News) == sizeof(uint32_t) && News::is_always_lock_free);
  return guarded(swap, static_cast<const uint32_t*>(nullptr), [](const Session& session) {
    return reinterpret_cast<const uint32_t*>(&session.news());
  });
}

void tierpilot_swap_memory(tierpilot_swap* swap, int64_t held_bytes, int64_t peak_bytes) {
  guarded(swap, [&](Session& session) { session.tell_memory(held_bytes, peak_bytes); });
}

size_t tierpilot_swap_left(tierpilot_swap* swap, tierpilot_swap_id* ids, size_t most) {
  return guarded(swap, size_t{0}, [&](Session& session) { return session.left(ids, most); });
}

tierpilot_swap_where tierpilot_swap_use(tierpilot_swap* swap, tierpilot_swap_id id) {
  return guarded(swap, TIERPILOT_SWAP_LOST,
                 [&](Session& session) { return where_of(session.use(id)); });
}

size_t tierpilot_swap_ahead(tierpilot_swap* swap, tierpilot_swap_id* ids, size_t most) {
  return guarded(swap, size_t{0}, [&](Session& session) { return session.ahead(ids, most); });
}

void tierpilot_swap_fetch(tierpilot_swap* swap, tierpilot_swap_id id, void* data, uint64_t stream) {
  guarded(swap,
          [&](Session& session) { session.fetch(id, static_cast<std::byte*>(data), stream); });
}

tierpilot_swap_where tierpilot_swap_wait(tierpilot_swap* swap, tierpilot_swap_id id) {
  return guarded(swap, TIERPILOT_SWAP_LOST,
                 [&](Session& session) { return where_of(session.wait(id)); });
}

void tierpilot_swap_release(tierpilot_swap* swap, tierpilot_swap_id id) {
  guarded(swap, [&](Session& session) { session.release(id); });
}

void tierpilot_swap_held(tierpilot_swap* swap, tierpilot_swap_id id) {
  guarded(swap, [&](Session& session) { session.held(id); });
}

int tierpilot_swap_room(tierpilot_swap* swap, int64_t bytes, int wait) {
  return guarded(swap, 1, [&](Session& session) { return session.room(bytes, wait != 0) ? 1 : 0; });
}

int tierpilot_swap_drop(tierpilot_swap* swap, tierpilot_swap_id id) {
  return guarded(swap, 0, [&](Session& session) { return session.drop(id) ? 1 : 0; });
}

int tierpilot_swap_segment_begin(tierpilot_swap* swap, uint64_t place, int64_t input_bytes) {
  return guarded(
      swap, 0, [&](Session& session) { return session.segment_begin(place, input_bytes) ? 1 : 0; });
}

void tierpilot_swap_segment_end(tierpilot_swap* swap, int possible) {
  guarded(swap, [&](Session& session) { session.segment_end(possible != 0); });
}

void tierpilot_swap_failed(tierpilot_swap* swap) {
  guarded(swap, [](Session& session) { session.failed(); });
}

size_t tierpilot_swap_describe(tierpilot_swap* swap, const char* what, char* text, size_t bytes) {
  return guarded(swap, size_t{0}, [&](Session& session) {
    const auto said = swap::describe(session, swap->plans_refused, what);
    say(said, text, bytes);
    return said.size();
  });
}

size_t tierpilot_swap_warning(tierpilot_swap* swap, char* text, size_t bytes) {
  return guarded(swap, size_t{0}, [&](Session& session) {
    constexpr int64_t kTwice = 2;  // what a first step lets leave need not have left
    const auto s = session.statistics();
    const auto said =
        swap->warnings.next(session.settings().budget_bytes, session.budget_bytes(), s.least_bytes,
                            s.over_budget_steps >= kTwice ? s.refusal : std::string());
    say(said, text, bytes);
    return said.size();
  });
}

int64_t tierpilot_swap_bytes(const char* text) {
  try {
    const auto bytes = parse_bytes(text);
    return bytes && *bytes <= static_cast<uint64_t>(swap::kMaxBytes) ? static_cast<int64_t>(*bytes)
                                                                     : -1;
  } catch (const std::exception&) {
    return -1;
  }
}

const char* tierpilot_swap_version(void) {
  return TIERPILOT_VERSION;
}
