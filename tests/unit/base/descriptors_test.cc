// What is opened has the number of no standard stream.
#include "base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tierpilot {
namespace {

// In a process without any of the three: the lowest number that a file gets, and whether writing
// and reading fail as they should.
int without_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) ::close(fd);
  occupy_standard_streams();
  char byte = 0;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (::write(fd, &byte, 1) != -1 || errno != EBADF) return -1;
  if (::read(STDIN_FILENO, &byte, 1) != -1 || errno != EBADF) return -1;
  return ::open("/dev/null", O_RDONLY);
}

TEST(StandardStreams, ThatAreClosedAreNobodyElses) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(without_streams());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_GT(static_cast<int8_t>(WEXITSTATUS(status)), STDERR_FILENO);
}

TEST(StandardStreams, ThatAreOpenStay) {
  const int before = ::fcntl(STDERR_FILENO, F_GETFL);
  occupy_standard_streams();
  EXPECT_EQ(::fcntl(STDERR_FILENO, F_GETFL), before);
}

}  // namespace
}  // namespace tierpilot
