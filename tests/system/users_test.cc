// Tasks of real daemons that run as users of their own: in a pool, under a daemon that is not root
// and has only the capabilities of its unit, and as who submitted them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kDaemonUser = 64'001;
constexpr uid_t kPoolFirst = 72'000, kPoolLast = 72'003;
constexpr const char* kDaemonCapabilities =
    "-all,+setuid,+setgid,+chown,+kill,+sys_nice,+sys_ptrace";

bool lives(uid_t uid) {
  errno = 0;
  return ::getpriority(PRIO_USER, uid) != -1 || errno != ESRCH;
}

bool any_lives() {
  for (uid_t uid = kPoolFirst; uid <= kPoolLast; ++uid)
    if (lives(uid)) return true;
  return false;
}

// In the words of setpriv(1), as systemd would start it.
Argv as_daemon() {
  const auto number = std::to_string(kDaemonUser);
  return {"/usr/bin/setpriv",
          "--reuid",
          number,
          "--regid",
          number,
          "--clear-groups",
          "--no-new-privs",
          "--inh-caps",
          kDaemonCapabilities,
          "--ambient-caps",
          kDaemonCapabilities,
          "--bounding-set",
          kDaemonCapabilities};
}

// Words before the programs of nodes alone.
std::function<Argv(int)> before_nodes(Argv words) {
  return [words = std::move(words)](int process) { return process < 0 ? Argv{} : words; };
}

std::optional<std::string> why_not() {
  if (::geteuid() != 0) return "only root may start daemons with other users and capabilities";
  if (::access("/usr/bin/setpriv", X_OK) != 0) return "setpriv is not installed";
  return cluster_unavailable();
}

class Users : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_not()) GTEST_SKIP() << *why;
  }
  void start(const std::string& run_as, const std::string& more = "") {
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 1,
                       .units = 4,
                       .lease_ms = 3000,
                       .max_attempts = 2,
                       .prefix = before_nodes(as_daemon()),
                       .coordinator_more = more,
                       .node_more = fmt::format("[tasks]\nrun_as = \"{}\"\n", run_as),
                       .node_user = kDaemonUser,
                       .others_pass = true});
  }
  void start_pool() { start(fmt::format("pool:{}-{}", kPoolFirst, kPoolLast)); }

  uint64_t submit(const TaskPlan& task) {
    const auto submitted = cluster_->client().submit({task});
    EXPECT_TRUE(submitted) << submitted.error().message;
    return submitted ? submitted->tasks.at(0) : 0;
  }
  Json ended(uint64_t id) {
    auto task = cluster_->client().wait(id);
    EXPECT_TRUE(task) << task.error().message;
    return task ? *task : Json();
  }
  std::string log(uint64_t id) { return cluster_->client().log(id).value_or("no log"); }
  // Output of a task that succeeds.
  std::string run(const TaskPlan& task) {
    const auto id = submit(task);
    const auto end = ended(id);
    EXPECT_EQ(end["state"], "succeeded") << end << log(id);
    return log(id);
  }
  std::string run(const std::string& script) { return run(shell_task(script)); }
  bool says(uint64_t id, const std::string& text) {
    return eventually([&] { return log(id).find(text) != std::string::npos; });
  }
  pid_t warden() {
    std::istringstream children(
        read_text(fmt::format("/proc/{0}/task/{0}/children", cluster_->node(0).pid())));
    for (pid_t child; children >> child;)
      if (read_text(fmt::format("/proc/{}/comm", child)) == "tierpilot-warde\n") return child;
    return 0;
  }
  // Tries what it must not be able to, and says what it could.
  std::string hostile(uint64_t victim) {
    const auto work = cluster_->folder() / "n1/work";
    const auto victims = work / fmt::format("tasks/{}-1", victim);
    return fmt::format(
        "exec 2>/dev/null\n"
        "try() {{ \"$@\" >/dev/null && echo \"could: $*\"; }}\n"
        "warden=$(cut -d' ' -f4 /proc/$PPID/stat)\n"
        "try cat {key}\ntry ls {work}/tasks\ntry ls {work}/tasks/.exits\ntry ls {work}/slow\n"
        "try cat {victims}/stdout.log\ntry cat {victims}/{own}/mine\ntry touch {victims}/{own}/x\n"
        "try kill -STOP {daemon}\ntry kill -9 {daemon}\ntry kill -STOP $warden\n"
        "try kill -9 $PPID\ntry cat /proc/{daemon}/environ\ntry cat /proc/{daemon}/mem\n"
        "try ls /proc/{daemon}/fd\n"
        "try python3 -c 'import socket; "
        "socket.socket(socket.AF_UNIX).connect(\"{folder}/c.sock\")'\n"
        "try python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); "
        "s.connect(\"{victims}/job.sock\"); s.sendall(b\"x\\n\"); assert s.recv(9)'\n"
        "for other in $(ls /proc | grep '^[0-9]*$'); do\n"
        "  [ $other = $$ ] || [ \"$(cut -d' ' -f4 /proc/$other/stat)\" = $$ ] || try kill -9 "
        "$other\n"
        "done\necho done",
        fmt::arg("key", (cluster_->folder() / "n1.key").string()), fmt::arg("work", work.string()),
        fmt::arg("victims", victims.string()), fmt::arg("daemon", cluster_->node(0).pid()),
        fmt::arg("folder", cluster_->folder().string()), fmt::arg("own", "work"));
  }
  void write_key() {
    const auto key = cluster_->folder() / "n1.key";
    std::ofstream(key) << "private";
    ::chmod(key.c_str(), 0600);
    ASSERT_EQ(::chown(key.c_str(), kDaemonUser, kDaemonUser), 0);
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(Users, APoolsTaskReachesNothingOfTheDaemonOrOfOthers) {
  start_pool();
  write_key();
  const auto victim = submit(shell_task("echo secret; echo x > mine; exec sleep 1000"));
  ASSERT_TRUE(says(victim, "secret"));
  EXPECT_EQ(run(hostile(victim)), "done\n");
  EXPECT_TRUE(cluster_->client().cancel(victim));
  EXPECT_EQ(ended(victim)["state"], "cancelled");
  const auto nodes = cluster_->client().nodes();
  ASSERT_TRUE(nodes);
  EXPECT_THAT((*nodes)[0].dump(), HasSubstr("each task as a user of its own"));
}

TEST_F(Users, DatasetsAreReadAndWritten) {
  start_pool();
  const auto file = cluster_->folder() / "words";
  std::ofstream(file) << "old\n";
  ASSERT_TRUE(cluster_->client().add_dataset_file("words", file.string(), "n1"));
  write_key();  // which the daemon can read
  const auto key =
      cluster_->client().add_dataset_file("key", (cluster_->folder() / "n1.key").string(), "n1");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().message, HasSubstr("is not read for others"));
  auto reader =
      shell_task("cat $TIERPILOT_DATASET_WORDS; echo no > $TIERPILOT_DATASET_WORDS || id -u");
  reader.datasets = {{"words", false}};
  EXPECT_THAT(run(reader), testing::StartsWith("old\n72"));
  auto writer =
      shell_task("echo new >> $TIERPILOT_DATASET_WORDS; chmod 0 $TIERPILOT_DATASET_WORDS");
  writer.datasets = {{"words", true}};
  run(writer);
  EXPECT_THAT(run(reader), testing::StartsWith("old\nnew\n72"));
  // Under a second name somebody could write it later.
  const auto link = fmt::format("/dev/shm/tierpilot-link-{}", ::getpid());
  auto cheat = shell_task(fmt::format("ln $TIERPILOT_DATASET_WORDS {}", link));
  cheat.datasets = {{"words", true}};
  const auto end = ended(submit(cheat));
  EXPECT_NE(end["state"], "succeeded");
  EXPECT_TRUE(eventually([&] { return !fs::exists(link); }));
  EXPECT_THAT(run(reader), testing::StartsWith("old\nnew\n72"));
}

TEST_F(Users, RanksHaveUsersOfTheirOwnAndTheirCheckpointsAreTaken) {
  start_pool();
  constexpr const char* kRank =
      "import os, tierpilot\n"
      "job = tierpilot.job()\n"
      "print('user', os.getuid(), flush=True)\n"
      "os.umask(0o077)\n"
      "if job.rank == 0:\n"
      "    open('state', 'w').write('7')\n"
      "    print('saved', job.checkpoint('state', iteration=7), job.checkpoint_error, "
      "flush=True)\n";
  const auto answer = tierctl_at(cluster_->address(),
                                 {"-j", "task", "submit", "--ranks", "2", "--env", python_path(),
                                  "--wait", "--", "/usr/bin/python3", "-c", kRank});
  ASSERT_EQ(answer.code, 0) << answer.err << answer.out;
  const auto gang = parse_json<Json>(answer.out)["tasks"][0]["id"].get<uint64_t>();
  const auto shown = cluster_->client().show(gang);
  ASSERT_TRUE(shown) << shown.error().message;
  std::set<std::string> users;
  std::string said;
  for (const auto& rank : (*shown)["ranks"]) {
    const auto text = log(rank["id"]);
    users.insert(text.substr(0, text.find('\n')));
    said += text;
  }
  EXPECT_EQ(users.size(), 2u) << said;
  EXPECT_THAT(said, HasSubstr("saved True"));
}

TEST_F(Users, ACancelledTaskGoesWithAllItsProcesses) {
  start_pool();
  const auto id =
      submit(shell_task("(setsid sh -c 'trap \"\" TERM; exec sleep 1000' &); "
                        "trap '' TERM; echo up; sleep 1000; sleep 1000"));
  ASSERT_TRUE(says(id, "up"));
  EXPECT_TRUE(any_lives());
  EXPECT_TRUE(cluster_->client().cancel(id));
  EXPECT_EQ(ended(id)["state"], "cancelled");
  // Who looks for what is left is this user for a moment.
  EXPECT_TRUE(eventually([] { return !any_lives(); }, std::chrono::seconds(20)));
}

TEST_F(Users, WithoutDaemonAndWardenNothingLivesAndTheNextDaemonGoesOn) {
  start_pool();
  const auto id = submit(shell_task("(setsid sleep 1000 &); echo up; exec sleep 1000"));
  ASSERT_TRUE(says(id, "up"));
  const auto keeper = warden();
  ASSERT_GT(keeper, 0);
  cluster_->node(0).signal(SIGKILL);
  ::kill(keeper, SIGKILL);
  EXPECT_TRUE(eventually([] { return !any_lives(); }));
  EXPECT_TRUE(cluster_->client().cancel(id));
  cluster_->node(0).kill_now();
  cluster_->start_node(0);
  EXPECT_THAT(run("id -u"), testing::StartsWith("72"));
}

TEST_F(Users, AUserIsUsedAgainOnlyWhenNothingIsLeftOfIt) {
  start_pool();
  const auto mark = fmt::format("/tmp/tierpilot-left-{}", ::getpid());
  std::set<std::string> users;
  for (int i = 0; i < 9; ++i) {
    const auto said =
        run(fmt::format("ls -d {0}-* 2>/dev/null; id -u; mkdir {0}-{1}; "
                        "(setsid sleep 1000 &)",
                        mark, i));
    EXPECT_EQ(said.size(), 6u) << said;
    users.insert(said);
  }
  EXPECT_EQ(users.size(), kPoolLast - kPoolFirst + 1);
}

TEST_F(Users, TasksRunAsWhoSubmittedThem) {
  start("submitter");
  write_key();
  const auto socket = cluster_->folder() / "c.sock";
  const auto submit_as = [&](const std::string& uid, const std::string& script) {
    ::chmod(socket.c_str(), 0666);
    auto answer =
        run_command({"/usr/bin/setpriv", "--reuid", uid, "--regid", uid, "--clear-groups",
                     program("TIERPILOT_TEST_TIERCTL"), "--connect", "unix:" + socket.string(),
                     "-j", "task", "submit", "--", "/bin/sh", "-c", script});
    ::chmod(socket.c_str(), 0660);
    const auto json = parse_json_or_discard<Json>(answer.out);
    return json.is_object() ? ended(json["tasks"][0]["id"]) : Json{{"reason", answer.err}};
  };
  const auto victim = submit(shell_task("true"));
  EXPECT_THAT(ended(victim)["reason"].get<std::string>(), HasSubstr("user 'root' is root"));
  EXPECT_EQ(ended(victim)["attempt"], 1) << "what no node can run is not tried again";
  const auto nobody = submit_as("65534", "id -u; id -G");
  EXPECT_EQ(nobody["state"], "succeeded") << nobody;
  EXPECT_EQ(log(nobody["id"]), "65534\n65534\n");
  const auto low = submit_as("1", "true");
  EXPECT_THAT(low["reason"].get<std::string>(), HasSubstr("below tasks.lowest_uid"));
  const auto none = submit_as("72000", "true");
  EXPECT_THAT(none["reason"].get<std::string>(), HasSubstr("has no account on this node"));
  const auto attack = submit_as("65534", hostile(victim));
  EXPECT_EQ(log(attack["id"]), "done\n");
}

// Tasks are the daemon's own user here, and still find no key.
TEST_F(Users, AKeyThatCameAsADescriptorIsReadByNoTask) {
  const auto number = std::to_string(kDaemonUser);
  cluster_ = std::make_unique<Cluster>(ClusterOptions{
      .nodes = 1,
      .tls = true,
      .prefix = before_nodes(
          {"/bin/sh", "-c",
           "exec 0<\"$(echo \"$3\" | sed s/toml$/key/)\"; exec /usr/bin/setpriv --reuid " + number +
               " --regid " + number +
               " --clear-groups --inh-caps -all "
               "--bounding-set -all \"$@\"",
           "sh"}),
      .node_user = kDaemonUser,
      .node_key = "fd:0",
      .others_pass = true});
  const auto key = (cluster_->folder() / "n1.key").string();
  ::chmod(key.c_str(), 0600);
  constexpr const char* kThief =
      "import ctypes, os, sys\n"
      "pid = int(sys.argv[1])\n"
      "for path in (sys.argv[2], f'/proc/{pid}/fd/0', f'/proc/{pid}/mem', "
      "f'/proc/{pid}/environ'):\n"
      "    try:\n"
      "        open(path, 'rb').read(1)\n"
      "        print('could read', path)\n"
      "    except OSError:\n"
      "        pass\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "handle = os.pidfd_open(pid)\n"
      "if libc.syscall(438, handle, 0, 0) >= 0: print('could take its descriptor')\n"
      "if libc.ptrace(16, pid, None, None) == 0: print('could trace it')\n"
      "print('user', os.getuid())\n";
  TaskPlan thief;
  thief.argv = {"/usr/bin/python3", "-c", kThief, std::to_string(cluster_->node(0).pid()), key};
  const auto id = submit(thief);
  EXPECT_EQ(ended(id)["state"], "succeeded");
  EXPECT_EQ(log(id), "user " + number + "\n");
}

TEST_F(Users, WithoutPrivilegesADaemonThatShallUseThemDoesNotStart) {
  start_pool();
  cluster_->node(0).end();
  const auto outcome =
      run_command({"/usr/bin/setpriv", "--reuid", std::to_string(kDaemonUser), "--regid",
                   std::to_string(kDaemonUser), "--clear-groups", "--inh-caps", "-all",
                   "--bounding-set", "-all", program("TIERPILOT_TEST_DAEMON"), "--config",
                   (cluster_->folder() / "n1.toml").string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("CAP_SETUID"));
}

}  // namespace
}  // namespace tierpilot::test
