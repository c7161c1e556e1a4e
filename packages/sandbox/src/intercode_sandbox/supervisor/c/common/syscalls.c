/* Wraps system calls that need the key of the seccomp filter, or an error message when they
   fail. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif
/* scopes of Landlock */
#define ABSTRACT_SOCKETS 1
#define SCOPED_SIGNALS 2

struct mount_attributes { uint64_t set, clear, propagation, userns; };

unsigned long filter_key;
static char message_text[1024];

/* Return the text of an error as glibc words it, so that observations do not depend on the C library
   that this program was linked with. */
const char *error_text(int code) {
#ifndef __GLIBC__
    static const struct { int code; const char *text; } texts[] = {
        {EIO, "Input/output error"}, {ECHILD, "No child processes"},
        {ENOMEM, "Cannot allocate memory"}, {EBUSY, "Device or resource busy"},
        {EXDEV, "Invalid cross-device link"}, {EMFILE, "Too many open files"},
        {ENAMETOOLONG, "File name too long"}, {ELOOP, "Too many levels of symbolic links"},
        {EOVERFLOW, "Value too large for defined data type"},
        {EOPNOTSUPP, "Operation not supported"}, {EDQUOT, "Disk quota exceeded"},
        {ETOOMANYREFS, "Too many references: cannot splice"},
        {EUCLEAN, "Structure needs cleaning"}, {ETIMEDOUT, "Connection timed out"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code) return texts[i].text;
#endif
    return strerror(code);
}

int fail(const char *format, ...) {
    int code = errno;
    va_list arguments;
    va_start(arguments, format);
    size_t used = (size_t)vsnprintf(message_text, sizeof message_text, format, arguments);
    va_end(arguments);
    if (used < sizeof message_text)
        snprintf(message_text + used, sizeof message_text - used, ": %s", error_text(code));
    errno = code;
    return -1;
}

const char *error_message(void) {
    return message_text;
}

void clear_error(void) {
    *message_text = 0;
}

int sys_unshare(int flags) {
    return syscall(SYS_unshare, (long)flags, 0L, 0L, 0L, 0L, filter_key) ? fail("unshare") : 0;
}

int sys_mount(const char *source, const char *target, const char *type, unsigned long flags,
              const char *options) {
    if (syscall(SYS_mount, source, target, type, flags, options, filter_key))
        return fail("mount %s on %s", type ? type : "bind", target);
    return 0;
}

int sys_umount(const char *target) {
    long result = syscall(SYS_umount2, target, (long)MNT_DETACH, 0L, 0L, 0L, filter_key);
    return result ? fail("umount2 %s", target) : 0;
}

int enter_new_root(void) {
    return syscall(SYS_pivot_root, ".", ".", 0L, 0L, 0L, filter_key) ? fail("pivot_root") : 0;
}

int unmount_old_root(void) {
    return sys_umount(".") ? -1 : chdir("/") ? fail("chdir /") : 0;
}

static int set_mount_attributes(const char *target, long flags, struct mount_attributes *changes) {
    if (syscall(SYS_mount_setattr, (long)AT_FDCWD, target, flags, changes, sizeof *changes,
                filter_key))
        return fail("mount_setattr %s", target);
    return 0;
}

/* Make a mount and those below it read-only, and give its programs no rights by set-user-ID bits or
   file capabilities. */
int make_read_only(const char *target) {
    long recursive = 0x8000, read_only = 1, nosuid = 2;
    return set_mount_attributes(target, recursive,
                                &(struct mount_attributes){.set = read_only | nosuid});
}

int clear_read_only(const char *target) {
    return set_mount_attributes(target, 0, &(struct mount_attributes){.clear = 1});
}

/* Make a detached mount of what an open directory of this mount namespace shows. */
int clone_mount(int fd) {
    long flags = 1 | O_CLOEXEC | AT_EMPTY_PATH;
    long tree = syscall(SYS_open_tree, (long)fd, "", flags, 0L, 0L, filter_key);
    return tree < 0 ? fail("open_tree") : (int)tree;
}

int attach_mount(int fd, const char *target) {
    long from_descriptor = 4;
    if (syscall(SYS_move_mount, (long)fd, "", (long)AT_FDCWD, target, from_descriptor, filter_key))
        return fail("move_mount %s", target);
    return 0;
}

/* Attach a detached mount to an open directory. */
int attach_mount_at(int fd, int target) {
    long from_and_to_descriptor = 4 | 0x40;
    if (syscall(SYS_move_mount, (long)fd, "", (long)target, "", from_and_to_descriptor, filter_key))
        return fail("move_mount");
    return 0;
}

/* Call openat2, again while the kernel cannot tell whether `..` stays in the directory: it returns EAGAIN
   if anything on the machine was renamed or mounted meanwhile. */
int open_resolved(int directory, const char *path, const struct open_how *how) {
    int fd = -1;
    for (int tries = 0; tries < 1000; tries++) {
        fd = (int)syscall(SYS_openat2, directory, path, how, sizeof *how);
        if (fd >= 0 || errno != EAGAIN) break;
    }
    return fd;
}

/* Open a path as a process whose root directory is `root` would, without magic links. */
int open_in_root(int root, const char *path, int flags, mode_t mode) {
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    return open_resolved(root, path, &how);
}

/* Set a resource limit, or leave a lower one. */
int lower_limit(int resource, unsigned long limit) {
    struct rlimit now;
    if (getrlimit(resource, &now)) return fail("getrlimit");
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < limit) limit = now.rlim_max;
    now.rlim_cur = now.rlim_max = limit;
    return setrlimit(resource, &now) ? fail("setrlimit") : 0;
}

/* Fail if a limit of the sandbox is above what this user may set, as after `ulimit -n 256`: it would
   silently be another one. */
int require_limit(int resource, const char *name, unsigned long limit) {
    struct rlimit now;
    if (getrlimit(resource, &now)) return fail("getrlimit");
    if (now.rlim_max == RLIM_INFINITY || now.rlim_max >= limit) return 0;
    errno = EPERM;
    return fail("the limit %s = %lu is above the hard limit of this machine or shell, %lu: raise that "
                "(ulimit -H), or set a lower %s", name, limit, (unsigned long)now.rlim_max, name);
}

/* Set the resource limits that started programs inherit. In a container without a user
   namespace of its own the engine limits the number of processes: the kernel would count those
   of the user on the whole machine, as it does pending signals and message queues. */
int set_limits(const struct json *limits, size_t first, long long extra_files) {
    const struct { int resource; const char *name; long long limit, extra; } all[] = {
        {RLIMIT_NPROC, "processes", 0, 0},
        {RLIMIT_SIGPENDING, NULL, MOST_PENDING_SIGNALS, 0},
        {RLIMIT_MSGQUEUE, NULL, MOST_QUEUED_BYTES, 0},
        {RLIMIT_NOFILE, "open_files", 0, extra_files},
        {RLIMIT_FSIZE, "file_size", 0, 0},
        {RLIMIT_AS, "address_space", 0, 0},
        {RLIMIT_CORE, NULL, 0, 0},
        {RLIMIT_MEMLOCK, NULL, MOST_LOCKED_BYTES, 0},
    };
    for (size_t i = first; i < sizeof all / sizeof *all; i++) {
        long long limit = all[i].name ? json_number(limits, all[i].name) : all[i].limit;
        if (all[i].name && require_limit(all[i].resource, all[i].name, (unsigned long)limit)) return -1;
        if (lower_limit(all[i].resource, (unsigned long)(limit + all[i].extra))) return -1;
    }
    return 0;
}

/* Confine this process and all that it starts by Landlock, if the kernel has version 6: they can
   connect to abstract sockets of each other only, and signal each other only. Mounts protect the
   files: a domain with rules for files would forbid the supervisor to mount. */
int confine_by_landlock(void) {
    struct { uint64_t files, network, scopes; } rules = {.scopes = ABSTRACT_SOCKETS | SCOPED_SIGNALS};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0L, 1L);
    if (version < 6) return 0;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0L);
    if (fd < 0) return fail("landlock_create_ruleset");
    int result = syscall(SYS_landlock_restrict_self, (long)fd, 0L) ? fail("landlock") : 0;
    close(fd);
    return result;
}

int open_proc(const char *path, int flags) {
    char whole[PATH_MAX];
    if (sandbox.proc) return openat(sandbox.proc, *path ? path : ".", flags | O_CLOEXEC);
    if ((size_t)snprintf(whole, sizeof whole, "/proc/%s", path) >= sizeof whole)
        return errno = ENAMETOOLONG, -1;
    return open(whole, flags | O_CLOEXEC);
}

/* Set the mode of an open file, which may be open for nothing but its path. */
int set_open_mode(int fd, mode_t mode) {
    struct stat info;
    char number[16];
    if (fstat(fd, &info)) return -1;
    if (S_ISLNK(info.st_mode)) return errno = ELOOP, -1;
    if (!syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH)) return 0;
    int files = open_proc("self/fd", O_PATH | O_DIRECTORY);
    if (files < 0) return -1;
    snprintf(number, sizeof number, "%d", fd);
    int result = fchmodat(files, number, mode, 0), code = errno;
    close(files);
    return errno = code, result;
}

/* Set the mode of an entry of a directory, or fail with ELOOP if it is a link: a command can put a
   link in the place of a file at any time. */
int set_mode(int directory, const char *name, mode_t mode) {
    if (!syscall(SYS_fchmodat2, directory, name, mode, AT_SYMLINK_NOFOLLOW)) return 0;
    if (errno == EOPNOTSUPP) return errno = ELOOP, -1;
    /* the call is new, and the filter of a container engine may not know it */
    if (errno != ENOSYS && errno != EPERM) return -1;
    int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    int result = set_open_mode(fd, mode), code = errno;
    close(fd);
    return errno = code, result;
}

/* Return the time of a clock that is never set. */
long long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Return the timeout of `poll` until a time of `milliseconds`; -1, for ever, if the time is 0. */
int time_until(long long time) {
    long long left = time - milliseconds();
    return !time ? -1 : left > 0 ? (int)left : 0;
}

void close_from(int first) {
    syscall(SYS_close_range, first, ~0U, 0);
}

int write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return fail("%s", path);
    ssize_t written = write(fd, text, strlen(text));
    int result = written < 0 ? fail("%s", path) : 0;
    close(fd);
    return result;
}

ssize_t read_text(int directory, const char *path, char *text, size_t capacity) {
    int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, capacity - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    return got;
}

void *ensure_capacity(void *list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return list;
    *capacity = count + count / 2 + 64;
    if (!(list = realloc(list, *capacity * size))) abort();
    return list;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct directory_record {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

static int read_directory(int fd, struct names *names, bool directories) {
    char buffer[1 << 15] __attribute__((aligned(8)));
    long got;
    memset(names, 0, sizeof *names);
    lseek(fd, 0, SEEK_SET);
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < got;) {
            struct directory_record *e = (struct directory_record *)(buffer + at);
            at += e->length;
            if (!strcmp(e->name, ".") || !strcmp(e->name, "..")) continue;
            if (directories && e->type != DT_DIR) continue;
            names->name = ensure_capacity(names->name, names->count, &names->capacity,
                                          sizeof *names->name);
            if (!(names->name[names->count++] = strdup(e->name))) abort();
        }
    }
    sort_names(names);
    return got < 0 ? fail("getdents64") : 0;
}

int list_names(int fd, struct names *names) {
    return read_directory(fd, names, false);
}

int list_directories(int fd, struct names *names) {
    return read_directory(fd, names, true);
}

void sort_names(struct names *names) {
    if (names->count) qsort(names->name, names->count, sizeof *names->name, compare_names);
}

bool contains_name(const struct names *names, const char *name) {
    return names->count
        && bsearch(&name, names->name, names->count, sizeof *names->name, compare_names) != NULL;
}

void free_names(struct names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->name[i]);
    free(names->name);
    memset(names, 0, sizeof *names);
}
