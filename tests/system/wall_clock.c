// Preloaded into a process: its wall clock is the machine's and as many seconds more as the file
// $TIERPILOT_TEST_CLOCK says, at any moment. Only what is asked for by the C library; the kernel's
// own waits for a time of day are not set.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* ahead_s;

__attribute__((constructor)) static void find_file(void) {
  const char* path = getenv("TIERPILOT_TEST_CLOCK");
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* mapped = mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) ahead_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && ahead_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += *ahead_s;
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* also) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (also) *also = now.tv_sec;
  return now.tv_sec;
}
