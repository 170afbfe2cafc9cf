#include "daemon/user_config.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace tierpilot {
namespace {

constexpr int64_t kHighestUid = 4'294'967'293;  // the two above it mean "none"
constexpr uint64_t kMostUsers = 65'536;
constexpr std::string_view kPoolPrefix = "pool:";

std::optional<uid_t> parse_uid(std::string_view text) {
  uid_t uid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
  if (error != std::errc{} || end != text.data() + text.size() || uid > kHighestUid) return {};
  return uid;
}

// Of a person's, say. What is left of a pool's user after a task is killed and removed, wherever it
// is: an account's processes and files would go with it. Empty: none that this machine lists.
std::string account_between(uid_t first, uid_t last) {
  std::string found;
  ::setpwent();
  while (const passwd* account = ::getpwent())
    if (found.empty() && first <= account->pw_uid && account->pw_uid <= last)
      found = fmt::format("{} is '{}'", account->pw_uid, account->pw_name);
  ::endpwent();
  return found;
}

// What is wrong with the range; empty: nothing.
std::string read_range(std::string_view text, uint64_t units, TaskUsersConfig& users) {
  const auto dash = text.find('-');
  const auto first = parse_uid(text.substr(0, dash));
  const auto last = dash == text.npos ? first : parse_uid(text.substr(dash + 1));
  if (!first || !last || *first > *last)
    return "a pool is a range of user numbers, such as \"pool:70000-70999\"";
  if (*first < users.lowest || (*first <= ::geteuid() && ::geteuid() <= *last))
    return fmt::format("the pool must not have users below lowest_uid ({}), nor the daemon's ({})",
                       users.lowest, ::geteuid());
  const uint64_t count = uint64_t{*last} - *first + 1;
  if (count < units || count > kMostUsers)
    return fmt::format("the pool has {} users: as many as units, {}, are needed, and {} allowed",
                       count, units, kMostUsers);
  if (const auto account = account_between(*first, *last); !account.empty())
    return fmt::format(
        "the pool must not have users with an account here, whose processes and "
        "files would be cleared away: {}",
        account);
  users.first = *first;
  users.last = *last;
  return {};
}

}  // namespace

TaskUsersConfig read_task_users(ConfigReader& reader, uint64_t units) {
  auto section = reader.section("tasks");
  TaskUsersConfig users;
  users.lowest = static_cast<uid_t>(section.integer("lowest_uid", 1000, 1, kHighestUid));
  const auto run_as = section.text("run_as", "daemon");
  if (run_as == "submitter") {
    users.kind = TaskUsersConfig::Kind::kSubmitter;
  } else if (run_as.starts_with(kPoolPrefix)) {
    users.kind = TaskUsersConfig::Kind::kPool;
    const auto range = std::string_view(run_as).substr(kPoolPrefix.size());
    if (const auto wrong = read_range(range, units, users); !wrong.empty())
      section.complain("run_as", wrong);
  } else if (run_as != "daemon") {
    section.complain("run_as", "must be \"daemon\", \"pool:FIRST-LAST\" or \"submitter\"");
  }
  return users;
}

}  // namespace tierpilot
