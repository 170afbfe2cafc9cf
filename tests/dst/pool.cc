#include "tests/dst/pool.h"

#include <algorithm>
#include <memory>

namespace tierpilot::dst {
namespace {

tl::unexpected<Error> disk_error(const std::string& what) {
  return fail(ErrorCode::kIo, what + ": Input/output error");
}

tl::unexpected<Error> no_room(const std::string& what) {
  return fail(ErrorCode::kExhausted, what + ": no room on the disk");
}

}  // namespace

Pool::Pool(Shelf& shelf, Surroundings surroundings) : shelf_(shelf), at_(std::move(surroundings)) {}

void Pool::later(int64_t from_ms, int64_t to_ms, std::function<void()> what) {
  at_.loop.after(at_.random.between(from_ms * kMs, to_ms * kMs), at_.life, std::move(what));
}

ReplicaChange Pool::change_of(const DatasetId& id, const Stored& stored) {
  return {id.name, id.version, stored.bytes, stored.fast, stored.slow, stored.home, id.digest};
}

bool Pool::holds(const std::string& name) const {
  const auto found = shelf_.lower_bound({name, 0});
  return found != shelf_.end() && found->first.name == name;
}

void Pool::serve(AttemptId owner, const std::vector<ServeItem>& needs,
                 std::function<void(Result<Served>)> done) {
  for (const auto& [other, request] : requests_)
    for (const auto& item : request.needs)
      for (const auto& need : needs)
        if (item.write && need.write && item.name == need.name)
          return later(0, 1, [done, name = need.name] {
            done(fail(ErrorCode::kConflict, "another task here writes dataset '" + name + "'"));
          });
  requests_[owner] = {needs, {}, false, false, std::move(done)};
  pin(requests_[owner], 1);
  later(1, at_.random.chance(0.1) ? 2'000 : 60, [this, owner] { bring_in(owner); });
}

void Pool::pin(const Request& request, int by) {
  for (const auto& item : request.needs)
    if (!item.write) pins_[item.id()] += by;
}

void Pool::bring_in(AttemptId owner) {
  auto& request = requests_.at(owner);
  Status status;
  for (const auto& item : request.needs) {
    // Room for what it will write is put aside before it begins.
    if (status && item.write && at_.disk_is_full()) status = no_room(describe(item.id()));
    if (status) status = take(owner, request, item);
  }
  if (status && request.cancelled) status = fail(ErrorCode::kConflict, "it was cancelled");
  auto done = std::move(request.done);
  if (status) {
    request.served = true;
    Served served;
    for (const auto& item : request.needs)
      served.items.push_back({.name = item.name, .version = item.version, .write = item.write});
    return done(std::move(served));
  }
  pin(request, -1);
  requests_.erase(owner);
  sweep();
  done(tl::unexpected(status.error()));
}

// What is in the fast tier is not read again; all else is, while it moves.
const Stored* Pool::find_good(const ServeItem& item) {
  const DatasetId id = item.id();
  const auto is_good = [](const Stored& stored) { return stored.fast || !stored.rotten; };
  if (const auto own = shelf_.find(id); own != shelf_.end()) {
    if (!own->second.fast && at_.disk_fails()) return nullptr;
    if (is_good(own->second)) return &own->second;
    verify(id);
  }
  for (const auto& source : item.sources) {
    const Stored* from = at_.remote(source, id);
    if (from && is_good(*from)) return from;
    if (from) at_.suspect(source, id);
  }
  return nullptr;
}

ReplicaCheck Pool::verify(const DatasetId& id) {
  const auto found = shelf_.find(id);
  if (found == shelf_.end()) return {};
  auto& stored = found->second;
  ReplicaCheck check{stored.fast ? CopyState::kGood : CopyState::kAbsent,
                     stored.slow ? CopyState::kGood : CopyState::kAbsent};
  // A file that cannot be read is as lost as one with other bytes.
  if (!stored.slow || (!stored.rotten && !at_.disk_fails())) return check;
  check.slow = CopyState::kDamaged;
  stored.slow = stored.rotten = false;
  stored.home = stored.home && stored.fast;
  auto gone = change_of(id, stored);
  gone.damaged = true;
  if (!stored.fast) shelf_.erase(found);
  at_.changed(gone);
  at_.lost(id);
  // It is written to the disk anew from memory, unless that is full.
  if (gone.home && at_.random.chance(0.5)) set_home(id, true);
  return check;
}

Status Pool::take(AttemptId owner, Request& request, const ServeItem& item) {
  const DatasetId id = item.id();
  const Stored* from = find_good(item);
  if (!from) return fail(ErrorCode::kIo, describe(id) + ": no source has it");
  at_.judge.read(run_of(owner), id.name, id.version, from->content);
  if (item.write) {
    request.copies[item.name] = from->content;
    return {};
  }
  auto [own, fresh] =
      shelf_.emplace(id, Stored{from->content, item.bytes, true, false, false, false});
  if (fresh || !own->second.fast) {
    own->second.fast = true;
    at_.changed(change_of(id, own->second));
  }
  return {};
}

void Pool::cancel(AttemptId owner) {
  const auto request = requests_.find(owner);
  if (request != requests_.end() && !request->second.served) request->second.cancelled = true;
}

void Pool::finish(AttemptId owner, bool success, std::function<void(Committed)> done) {
  auto written = std::make_shared<Committed>();
  const auto last = [this, owner, written, done] {
    requests_.erase(owner);
    at_.at_commit_step(3);
    if (at_.life->alive) done(std::move(*written));
  };
  const auto clear = [this, owner, last] {
    pin(requests_.at(owner), -1);
    at_.at_commit_step(1);
    if (!at_.life->alive) return;
    sweep();
    at_.at_commit_step(2);
    later(0, 5, last);
  };
  later(0, 40, [this, owner, success, written, clear] {
    at_.at_commit_step(0);
    if (!at_.life->alive) return;
    if (success) *written = publish(owner, requests_.at(owner));
    later(0, 5, clear);
  });
}

Committed Pool::publish(AttemptId owner, const Request& request) {
  std::vector<ReplicaChange> published;
  for (const auto& item : request.needs) {
    if (!item.write) continue;
    const Digest content =
        at_.judge.contents().written(request.copies.at(item.name), run_of(owner));
    const DatasetId id{item.name, item.version + 1, checksum(content)};
    const Stored stored{content, item.bytes, true, true, true, false};
    if (at_.disk_is_full()) {
      for (const auto& change : published) take_back(change);
      return tl::unexpected(CommitError(no_room("commit of " + describe(id)).value(), item.bytes));
    }
    if (at_.disk_fails()) {
      // All or nothing. What was taken back may be there again after a power cut.
      at_.half_synced(id, stored);
      for (const auto& change : published) take_back(change);
      return disk_error("commit of " + describe(id));
    }
    at_.judge.committed(run_of(owner), id.name, id.version, content);
    shelf_[id] = stored;
    doomed_.erase(id);
    if (!at_.keeps_old_home) doom(id.name, id.version);
    published.push_back(change_of(id, shelf_[id]));
    at_.changed(published.back());
  }
  return published;
}

void Pool::take_back(ReplicaChange change) {
  shelf_.erase({change.name, change.version, change.digest});
  change.in_fast = change.in_slow = change.home = false;
  at_.changed(change);
}

void Pool::create(const std::string& name, uint64_t bytes,
                  std::function<void(Result<ReplicaChange>)> done) {
  later(5, 300, [this, name, bytes, done] {
    if (holds(name))
      return done(fail(ErrorCode::kConflict, "dataset '" + name + "' exists already"));
    if (at_.disk_is_full()) return done(no_room("dataset '" + name + "'"));
    if (at_.disk_fails()) return done(disk_error("dataset '" + name + "'"));
    const Digest content = at_.judge.contents().made(name, bytes);
    const DatasetId id{name, 1, checksum(content)};
    shelf_[id] = {content, bytes, false, true, true, false};
    at_.changed(change_of(id, shelf_[id]));
    done(change_of(id, shelf_[id]));
  });
}

void Pool::drop(const std::string& name, uint64_t below) {
  doom(name, below);
  later(0, 20, [this] { sweep(); });
}

void Pool::set_home(const DatasetId& id, bool home) {
  const auto found = shelf_.find(id);
  if (found == shelf_.end()) return;
  auto& stored = found->second;
  // It is to be dropped once nobody uses it.
  if (home && doomed_.contains(id)) return;
  if (home && !stored.slow && (at_.disk_is_full() || at_.disk_fails())) return;
  stored.home = home;
  if (home && !stored.slow) stored.slow = true, stored.rotten = false;
  at_.changed(change_of(id, stored));
}

void Pool::keep(const ServeItem& item, std::function<void(Status)> done) {
  later(1, at_.random.chance(0.1) ? 2'000 : 60, [this, item, done] {
    const DatasetId id = item.id();
    // What is here already is not read for it.
    if (!shelf_.contains(id)) {
      if (at_.disk_is_full()) return done(no_room(describe(id)));
      if (at_.disk_fails()) return done(disk_error(describe(id)));
      const Stored* from = find_good(item);
      if (!from) return done(fail(ErrorCode::kIo, describe(id) + ": no source has it"));
      shelf_[id] = {from->content, item.bytes, false, true, false, false};
    }
    set_home(id, true);
    const auto kept = shelf_.find(id);
    if (kept != shelf_.end() && kept->second.home) return done({});
    done(at_.disk_is_full() ? no_room(describe(id)) : disk_error(describe(id)));
  });
}

void Pool::discard(const DatasetId& id) {
  doomed_.insert(id);
  sweep();
}

void Pool::doom(const std::string& name, uint64_t below) {
  for (const auto& [id, stored] : shelf_)
    if (id.name == name && id.version < below) doomed_.insert(id);
}

void Pool::sweep() {
  for (auto id = doomed_.begin(); id != doomed_.end();) {
    if (pins_[*id] > 0) {
      ++id;
      continue;
    }
    if (const auto stored = shelf_.find(*id); stored != shelf_.end()) {
      ReplicaChange gone = change_of(*id, stored->second);
      gone.in_fast = gone.in_slow = gone.home = false;
      shelf_.erase(stored);
      at_.changed(gone);
    }
    id = doomed_.erase(id);
  }
}

void Pool::evict() {
  for (auto at = shelf_.begin(); at != shelf_.end();) {
    auto& [id, stored] = *at;
    if (pins_[id] > 0 || (stored.home && !(stored.fast && stored.slow))) {
      ++at;
      continue;
    }
    stored.fast = false;
    ReplicaChange gone = change_of(id, stored);
    gone.in_slow = gone.in_slow && stored.home;
    at = stored.home ? std::next(at) : shelf_.erase(at);
    at_.changed(gone);
  }
}

std::vector<ReplicaChange> Pool::replicas() const {
  std::vector<ReplicaChange> all;
  for (const auto& [id, stored] : shelf_) {
    auto& change = all.emplace_back(change_of(id, stored));
    change.damaged = stored.home && stored.fast && !stored.slow;
  }
  return all;
}

}  // namespace tierpilot::dst
