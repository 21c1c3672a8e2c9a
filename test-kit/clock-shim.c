/*
 * A clock that can be set. Preloaded into a server, it changes the results of the calls for the wall clock to
 *
 *   base + (real - base) * rate + offset
 *
 * Each call reads the three numbers from the file that HOLDFAST_CLOCK_FILE names: { int64 offset in microseconds, double rate,
 * int64 base in microseconds }. The monotonic clock does not change. The real time comes from a system call, because an allocator
 * may read the clock before the C library is initialized.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct setting {
  int64_t offset;
  double rate;
  int64_t base;
};

static const volatile struct setting *setting;

__attribute__((constructor)) static void read_setting(void) {
  const char *path = getenv("HOLDFAST_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file >= 0) {
    void *mapped = mmap(NULL, sizeof(struct setting), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) {
      setting = mapped;
    }
    close(file);
  }
}

static void altered(struct timespec *time) {
  syscall(SYS_clock_gettime, CLOCK_REALTIME, time);
  if (setting) {
    int64_t real = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
    int64_t base = setting->base * 1000;
    int64_t result = base + (int64_t)((double)(real - base) * setting->rate) + setting->offset * 1000;
    time->tv_sec = result / 1000000000;
    time->tv_nsec = result % 1000000000;
  }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
    return (int)syscall(SYS_clock_gettime, clock, time);
  }
  altered(time);
  return 0;
}

int gettimeofday(struct timeval *restrict result, void *restrict zone) {
  struct timespec time;
  (void)zone;
  altered(&time);
  result->tv_sec = time.tv_sec;
  result->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  altered(&now);
  if (result) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}
