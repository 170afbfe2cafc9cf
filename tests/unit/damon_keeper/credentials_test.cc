// Who may watch whom, and what is believed of /proc.
#include "daemon/damon_keeper/credentials.h"

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/damon_keeper/proc_entry.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMayTrace = uint64_t{1} << CAP_SYS_PTRACE;

Credentials user(uid_t uid) {
  return {.uids = {uid, uid, uid},
          .gids = {uid, uid, uid},
          .initial_user_namespace = true,
          .owner = uid,
          .has_memory = true};
}

TEST(Credentials, TheOwnProcessesMayBeWatched) {
  EXPECT_TRUE(may_watch(user(1000), user(1000)));
  EXPECT_TRUE(may_watch(user(0), user(0)));
}

TEST(Credentials, OthersNeedTheCapability) {
  EXPECT_EQ(may_watch(user(1000), user(1001)).error().code, ErrorCode::kDenied);
  EXPECT_FALSE(may_watch(user(1000), user(0)));
  EXPECT_FALSE(may_watch(user(0), user(1000))) << "root without capabilities is a user as others";
  auto tracer = user(1000);
  tracer.permitted = tracer.effective = kMayTrace;
  EXPECT_TRUE(may_watch(tracer, user(0)));
  EXPECT_TRUE(may_trace_all(tracer));
}

TEST(Credentials, CapabilitiesOfAnotherUserNamespaceCountForNothing) {
  auto contained = user(1000);
  contained.permitted = contained.effective = UINT64_MAX;
  contained.initial_user_namespace = false;
  EXPECT_FALSE(may_trace_all(contained));
  EXPECT_FALSE(may_watch(contained, user(0)));
  EXPECT_TRUE(may_watch(contained, user(1000)));
  auto privileged = user(1000);
  privileged.permitted = 1;
  EXPECT_FALSE(may_watch(contained, privileged)) << "of the same user";
}

TEST(Credentials, APermittedCapabilityThatIsNotRaisedCountsForNothing) {
  auto lowered = user(1000);
  lowered.permitted = kMayTrace;
  EXPECT_FALSE(may_trace_all(lowered));
}

TEST(Credentials, PartsOfAnotherIdentityAreAnother) {
  for (size_t i = 0; i < 3; ++i) {
    auto target = user(1000);
    target.uids[i] = 0;
    EXPECT_FALSE(may_watch(user(1000), target)) << "uid " << i;
    target = user(1000);
    target.gids[i] = 0;
    EXPECT_FALSE(may_watch(user(1000), target)) << "gid " << i;
  }
  auto undumpable = user(1000);
  undumpable.owner = 0;
  EXPECT_FALSE(may_watch(user(1000), undumpable));
  auto privileged = user(1000);
  privileged.permitted = 1;
  EXPECT_FALSE(may_watch(user(1000), privileged));
  auto equal = user(1000);
  equal.permitted = 3;
  EXPECT_TRUE(may_watch(equal, privileged));
}

struct CredentialsOfProc : ::testing::Test {
  ScratchDirectory root;
  Sysroot sysroot{root.path()};
};

TEST_F(CredentialsOfProc, AreRead) {
  write_proc_entry(sysroot, 42, {.uid = 7, .gid = 8, .capabilities = kMayTrace, .start_ticks = 99});
  const auto found = read_credentials(sysroot, 42).value();
  EXPECT_EQ(found.uids, (std::array<uid_t, 3>{7, 7, 7}));
  EXPECT_EQ(found.gids, (std::array<gid_t, 3>{8, 8, 8}));
  EXPECT_EQ(found.permitted, kMayTrace);
  EXPECT_EQ(found.effective, kMayTrace);
  EXPECT_EQ(found.start_ticks, 99U);
  EXPECT_EQ(found.owner, ::getuid());
  EXPECT_TRUE(found.initial_user_namespace);
  EXPECT_TRUE(found.has_memory);
  EXPECT_EQ(read_credentials(sysroot, 43).error().code, ErrorCode::kNotFound);
}

TEST_F(CredentialsOfProc, TellKernelThreadsAndUserNamespaces) {
  write_proc_entry(sysroot, 42, {.has_memory = false, .uid_map = "0 100000 65536"});
  const auto found = read_credentials(sysroot, 42).value();
  EXPECT_FALSE(found.has_memory);
  EXPECT_FALSE(found.initial_user_namespace);
  write_proc_entry(sysroot, 42, {.uid_map = ""});
  EXPECT_FALSE(read_credentials(sysroot, 42).value().initial_user_namespace);
}

TEST_F(CredentialsOfProc, NonsenseIsAnError) {
  write_proc_entry(sysroot, 42, {});
  for (const char* text : {"", "Name:\tx\n", "Name:\tx\nUid:\t1\t2\nGid:\t1\t1\t1\nCapPrm:\t0\n",
                           "Name:\tx\nUid:\t-1\t1\t1\t1\nGid:\t1\t1\t1\t1\nCapPrm:\t0\nCapEff:\t0",
                           "Name:\tx\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nCapPrm:\tx\nCapEff:\t0",
                           "Uid:\t99999999999999\t1\t1\t1\nGid:\t1\t1\t1\t1\n"}) {
    write_proc_file(sysroot, 42, "status", text);
    EXPECT_FALSE(read_credentials(sysroot, 42)) << text;
  }
  write_proc_entry(sysroot, 42, {});
  for (const char* text : {"", "42 (x) S 1", "42 x S 1 1 1 1", ") ) ) )"}) {
    write_proc_file(sysroot, 42, "stat", text);
    EXPECT_FALSE(read_credentials(sysroot, 42)) << text;
  }
}

TEST(Credentials, OfThisProcess) {
  const auto own = read_credentials(Sysroot(), ::getpid());
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->uids[1], ::geteuid());
  EXPECT_TRUE(own->has_memory);
  if (own->initial_user_namespace || own->permitted == 0) {
    EXPECT_TRUE(may_watch(*own, *own));
  }
}

TEST(Credentials, OfAPeer) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd one(ends[0]), other(ends[1]);
  const auto peer = peer_credentials(Sysroot(), one.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->uids[1], ::geteuid());
}

// A process at the other end of a connection, of which /proc tells what is made up.
struct CredentialsOfPeer : CredentialsOfProc {
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    one.reset(ends[0]);
    other.reset(ends[1]);
  }
  Credentials of(const ProcEntry& entry) {
    write_proc_entry(sysroot, ::getpid(), entry);
    return peer_credentials(sysroot, one.get()).value();
  }
  UniqueFd one, other;
};

TEST_F(CredentialsOfPeer, HaveNoCapabilitiesOfASetuidProgramStartedSince) {
  for (const auto& entry : {ProcEntry{.uid = ::geteuid() + 1, .capabilities = UINT64_MAX},
                            ProcEntry{.gid = ::getegid() + 1, .capabilities = UINT64_MAX}}) {
    const auto peer = of(entry);
    EXPECT_EQ(peer.permitted, 0U);
    EXPECT_FALSE(may_trace_all(peer));
    EXPECT_EQ(peer.uids[1], ::geteuid()) << "as whom it connected";
    EXPECT_EQ(peer.gids[1], ::getegid());
    EXPECT_EQ(peer.owner, ::geteuid());
  }
}

TEST_F(CredentialsOfPeer, HaveNoCapabilitiesOfAProgramsFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give /proc/PID another owner";
  (void)of({});
  const auto folder = sysroot.resolve(fmt::format("/proc/{}", ::getpid()));
  ASSERT_EQ(::chown(folder.c_str(), 1, 1), 0);
  EXPECT_FALSE(may_trace_all(of({.capabilities = kMayTrace})));
  ASSERT_EQ(::chown(folder.c_str(), 0, 0), 0);
  EXPECT_TRUE(may_trace_all(of({.capabilities = kMayTrace})) || of({}).start_ticks == 0)
      << "without SO_PEERPIDFD nothing is looked up";
}

TEST(Credentials, OfAPeerThatEndedAreNotLookedUp) {
  // The child makes the pair, so that it is its own peer, hands one end over and ends.
  int channel[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), 0);
  const UniqueFd mine(channel[0]), childs(channel[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) ::_exit(1);
    ::_exit(send_fd(childs.get(), pair[0]) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const UniqueFd left(receive_fd(mine.get()));
  ASSERT_TRUE(left);
  const auto peer = peer_credentials(Sysroot(), left.get());
  // Without SO_PEERPIDFD the kernel's word on the user is all that there is.
  if (peer)
    EXPECT_EQ(peer->permitted, 0U);
  else
    EXPECT_EQ(peer.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tierpilot
