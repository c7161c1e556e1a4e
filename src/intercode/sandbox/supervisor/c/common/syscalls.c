/* System calls that the filter asks the key for, and others that need a reason when they fail. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

struct attributes { uint64_t set, clear, propagation, userns; };

unsigned long key;
static char why[1024];

int failed(const char *format, ...) {
    int code = errno;
    va_list arguments;
    va_start(arguments, format);
    size_t used = (size_t)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (used < sizeof why) snprintf(why + used, sizeof why - used, ": %s", strerror(code));
    errno = code;
    return -1;
}

const char *reason(void) {
    return why;
}

void begin_reason(void) {
    *why = 0;
}

int unshared(int flags) {
    return syscall(SYS_unshare, (long)flags, 0L, 0L, 0L, 0L, key) ? failed("unshare") : 0;
}

int mounted(const char *source, const char *target, const char *type, unsigned long flags,
            const char *options) {
    if (syscall(SYS_mount, source, target, type, flags, options, key))
        return failed("mount %s on %s", type ? type : "bind", target);
    return 0;
}

int unmounted(const char *target) {
    long result = syscall(SYS_umount2, target, (long)MNT_DETACH, 0L, 0L, 0L, key);
    return result ? failed("umount2 %s", target) : 0;
}

int pivoted(void) {
    if (syscall(SYS_pivot_root, ".", ".", 0L, 0L, 0L, key)) return failed("pivot_root");
    if (unmounted(".")) return -1;
    return chdir("/") ? failed("chdir /") : 0;
}

int made_read_only(const char *target) {
    struct attributes read_only = {.set = 1};
    long recursive = 0x8000;
    if (syscall(SYS_mount_setattr, (long)AT_FDCWD, target, recursive, &read_only,
                sizeof read_only, key))
        return failed("mount_setattr %s", target);
    return 0;
}

/* A new mount, of nothing yet, of what an open directory of this mount namespace shows. */
int detached(int fd) {
    long flags = 1 | O_CLOEXEC | AT_EMPTY_PATH;
    long tree = syscall(SYS_open_tree, (long)fd, "", flags, 0L, 0L, key);
    return tree < 0 ? failed("open_tree") : (int)tree;
}

int attached(int fd, const char *target) {
    long from_descriptor = 4;
    if (syscall(SYS_move_mount, (long)fd, "", (long)AT_FDCWD, target, from_descriptor, key))
        return failed("move_mount %s", target);
    return 0;
}

/* Open a path as a process whose root directory is `root` would, without magic links. */
int open_inside(int root, const char *path, int flags, mode_t mode) {
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Limits that are handed on to what is started. Where the box is a container without a user namespace
   of its own, its engine bounds the number of processes: the kernel would count the id's on all of the
   machine. */
int limited(const struct json *limits, bool processes, long long spare_files) {
    const struct { int what; long long most; } all[] = {
        {RLIMIT_NPROC, get_number(limits, "processes")},
        {RLIMIT_NOFILE, get_number(limits, "open_files") + spare_files},
        {RLIMIT_FSIZE, get_number(limits, "file_size")},
        {RLIMIT_AS, get_number(limits, "address_space")},
        {RLIMIT_CORE, 0},
        {RLIMIT_MEMLOCK, 1 << 20},
    };
    for (size_t i = !processes; i < sizeof all / sizeof *all; i++) {
        struct rlimit now;
        rlim_t most = (rlim_t)all[i].most;
        if (getrlimit(all[i].what, &now)) return failed("getrlimit");
        if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most) most = now.rlim_max;
        now.rlim_cur = now.rlim_max = most;
        if (setrlimit(all[i].what, &now)) return failed("setrlimit");
    }
    return 0;
}

int write_to(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return failed("%s", path);
    ssize_t written = write(fd, text, strlen(text));
    int result = written < 0 ? failed("%s", path) : 0;
    close(fd);
    return result;
}

static int in_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

static int list(int fd, struct names *names, bool directories) {
    char buffer[1 << 15] __attribute__((aligned(8)));
    long got;
    memset(names, 0, sizeof *names);
    lseek(fd, 0, SEEK_SET);
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < got;) {
            struct entry *e = (struct entry *)(buffer + at);
            at += e->length;
            if (!strcmp(e->name, ".") || !strcmp(e->name, "..")) continue;
            if (directories && e->type != DT_DIR) continue;
            if (names->count == names->room) {
                names->room = names->room ? names->room * 2 : 16;
                names->name = realloc(names->name, names->room * sizeof *names->name);
                if (!names->name) abort();
            }
            if (!(names->name[names->count++] = strdup(e->name))) abort();
        }
    }
    sort_names(names);
    return got < 0 ? failed("getdents64") : 0;
}

int names_in(int fd, struct names *names) {
    return list(fd, names, false);
}

int directories_in(int fd, struct names *names) {
    return list(fd, names, true);
}

void sort_names(struct names *names) {
    if (names->count) qsort(names->name, names->count, sizeof *names->name, in_order);
}

bool has(const struct names *names, const char *name) {
    return names->count && bsearch(&name, names->name, names->count, sizeof *names->name, in_order) != NULL;
}

void free_names(struct names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->name[i]);
    free(names->name);
    memset(names, 0, sizeof *names);
}
