#include "daemon/agent/tasks/accounts.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tierpilot::agent {
namespace {

constexpr size_t kMaxEntryBytes = 1 << 20;
constexpr int kMaxGroups = 65536;

tl::unexpected<Error> refused(const std::string& name, const std::string& why) {
  return fail(ErrorCode::kInvalid,
              fmt::format("user '{}' {}, and tasks run as who submitted them here (tasks.run_as)",
                          name, why));
}

std::vector<gid_t> groups_of(const passwd& entry) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (::getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) < 0 &&
         count < kMaxGroups)
    groups.resize(
        static_cast<size_t>(count = std::max(count, static_cast<int>(groups.size()) * 2)));
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  // Root's group is nobody's to bring along.
  std::erase(groups, gid_t{0});
  return groups;
}

}  // namespace

Result<TaskUser> find_account(const std::string& name, uid_t lowest) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) ==
             ERANGE &&
         buffer.size() < kMaxEntryBytes)
    buffer.resize(buffer.size() * 2);
  if (error != 0 && error != ENOENT)
    return fail_errno(error, fmt::format("account of user '{}'", name));
  if (!found) return refused(name, "has no account on this node");
  if (entry.pw_uid == 0 || entry.pw_gid == 0) return refused(name, "is root or of its group");
  if (entry.pw_uid == ::geteuid()) return refused(name, "is the daemon's own");
  if (entry.pw_uid < lowest)
    return refused(name, fmt::format("has number {}, below tasks.lowest_uid", entry.pw_uid));
  return TaskUser{.uid = entry.pw_uid, .gid = entry.pw_gid, .groups = groups_of(entry)};
}

Accounts::Accounts(uid_t lowest, Post post)
    : lowest_(lowest), post_(std::move(post)), thread_([this] { work(); }) {}

Accounts::~Accounts() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void Accounts::find(std::string name, Found found) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(std::move(name), std::move(found));
  }
  asked_.notify_one();
}

void Accounts::work() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (waiting_.empty()) {
      asked_.wait(lock);
      continue;
    }
    auto [name, found] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    post_([found = std::move(found), account = find_account(name, lowest_)] { found(account); });
    lock.lock();
  }
}

}  // namespace tierpilot::agent
