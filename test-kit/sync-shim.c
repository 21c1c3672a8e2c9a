/*
 * Records what a loss of power would leave. Preloaded into a server, it writes the size of each file at its last fsync or fdatasync,
 * an int64, into a file that is named after the inode, in the folder HOLDFAST_SYNC_FOLDER.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int synced(long call, int file) {
  struct stat status; /* of before the call, because later writes may not be on the disk */
  int is_known = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  int result = (int)syscall(call, file);
  const char *folder = getenv("HOLDFAST_SYNC_FOLDER");
  if (result == 0 && is_known && folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%llu", folder, (unsigned long long)status.st_ino);
    int record = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int64_t size = status.st_size;
    if (record < 0 || pwrite(record, &size, sizeof size, 0) != sizeof size) {
      abort(); /* a record that is too small would look like a loss */
    }
    close(record);
  }
  return result;
}

int fsync(int file) { return synced(SYS_fsync, file); }

int fdatasync(int file) { return synced(SYS_fdatasync, file); }
