// Preloaded into a process: while the file $TIERPILOT_TEST_SYNCS_FAIL is there, whatever it wants
// on disk fails, though the kernel has taken it.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(void) {
  const char* path = getenv("TIERPILOT_TEST_SYNCS_FAIL");
  const int before = errno;
  const int there = path && access(path, F_OK) == 0;
  errno = there ? EIO : before;
  return there;
}

int fsync(int fd) {
  return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  return fails() ? -1 : (int)syscall(SYS_fdatasync, fd);
}
