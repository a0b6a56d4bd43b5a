// A disk that fails, before the C library: while the file $FAULTS says "ERRNO AFTER NUMBER", every change below its folder fails with
// ERRNO once AFTER changes went well. $FAULTS.hit names what failed. Another NUMBER counts anew.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long seen, number = -1;

static int below(const char *path) {
    const char *control = getenv("FAULTS");
    if (!control || !path) return 0;
    char whole[4096];
    if (path[0] != '/') {
        if (syscall(SYS_getcwd, whole, sizeof whole / 2) < 0) return 0;
        strcat(whole, "/");
        strncat(whole, path, sizeof whole / 2 - 2);
    } else {
        snprintf(whole, sizeof whole, "%s", path);
    }
    size_t folder = strrchr(control, '/') - control;
    return !strncmp(whole, control, folder) && whole[folder] == '/' && !strstr(whole, ".faults");
}

// The error of this change, or 0.
static int fails(const char *what, const char *path, int syncs) {
    if (!below(path)) return 0;
    int how = 0;
    pthread_mutex_lock(&lock);
    char said[64] = "";
    int control = syscall(SYS_openat, AT_FDCWD, getenv("FAULTS"), O_RDONLY | O_CLOEXEC);
    if (control >= 0) {
        long got = syscall(SYS_read, control, said, sizeof said - 1);
        syscall(SYS_close, control);
        int error = 0;
        long after = 0, now = 0;
        if (got > 0 && sscanf(said, "%d %ld %ld", &error, &after, &now) == 3) {
            if (now != number) { number = now; seen = 0; }
            if (!(error == ENOSPC && syncs) && seen++ >= after) how = error;
        }
    }
    if (how) {
        char hit[4096], line[4200];
        snprintf(hit, sizeof hit, "%s.hit", getenv("FAULTS"));
        int to = syscall(SYS_openat, AT_FDCWD, hit, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int length = snprintf(line, sizeof line, "%ld %s %s\n", number, what, path);
        if (to >= 0) { syscall(SYS_write, to, line, length); syscall(SYS_close, to); }
    }
    pthread_mutex_unlock(&lock);
    return how;
}

static int fd_fails(const char *what, int fd, int syncs) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || path[0] != '/') return 0;
    path[length] = 0;
    return fails(what, path, syncs);
}

#define CHANGE(type, name, parameters, arguments, test) \
    type name parameters { \
        static type (*real) parameters; \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        int error = test; \
        if (error) { errno = error; return -1; } \
        return real arguments; \
    }

CHANGE(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n), fd_fails("write", fd, 0))
CHANGE(ssize_t, copy_file_range, (int i, off64_t *a, int fd, off64_t *b, size_t n, unsigned f), (i, a, fd, b, n, f), fd_fails("write", fd, 0))
CHANGE(ssize_t, sendfile64, (int fd, int i, off64_t *a, size_t n), (fd, i, a, n), fd_fails("write", fd, 0))
CHANGE(int, fsync, (int fd), (fd), fd_fails("sync", fd, 1))
CHANGE(int, fdatasync, (int fd), (fd), fd_fails("sync", fd, 1))
CHANGE(int, ftruncate64, (int fd, off64_t n), (fd, n), fd_fails("cut", fd, 1))
CHANGE(int, rename, (const char *a, const char *b), (a, b), fails("rename", b, 1))
CHANGE(int, link, (const char *a, const char *b), (a, b), fails("link", b, 0))
CHANGE(int, unlink, (const char *a), (a), fails("unlink", a, 1))
CHANGE(int, mkdir, (const char *a, mode_t m), (a, m), fails("mkdir", a, 0))

int open64(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "open64");
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    int error = writes ? fails("open", path, !(flags & O_CREAT)) : 0;
    if (error) { errno = error; return -1; }
    return real(path, flags, mode);
}
