/* A container's keeper has no right to read what its owner may not, but being the owner it can take
   the right, and give it back. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock { int root; char *path; mode_t mode; };

static struct lock *locks;
static size_t count, room;

/* Open a path below a directory, by no link and in no other mount. One that is longer than the kernel
   takes is walked in pieces. */
int open_exact(int root, const char *path, int flags, mode_t mode) {
    if (strlen(path) >= PATH_MAX) {
        size_t length = PATH_MAX - 1;
        while (length && path[length] != '/') length--;
        if (!length) return errno = ENAMETOOLONG, -1;
        char *part = strndup(path, length);
        int fd = part ? open_exact(root, part, O_PATH | O_DIRECTORY, 0) : -1;
        int found = fd < 0 ? -1 : open_exact(fd, path + length + 1, flags, mode), code = errno;
        if (fd >= 0) close(fd);
        free(part);
        return errno = code, found;
    }
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    return (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
}

void remember_lock(int root, const char *path, mode_t mode) {
    if (count == room) {
        room = room ? room * 2 : 16;
        if (!(locks = realloc(locks, room * sizeof *locks))) abort();
    }
    locks[count++] = (struct lock){root, strdup(path), mode & 07777};
}

/* The mode that a path has where no right is taken, given the one that it has now. */
mode_t locked_mode(int root, const char *path, mode_t now) {
    for (size_t i = 0; i < count; i++)
        if (locks[i].root == root && !strcmp(locks[i].path, path)) return locks[i].mode;
    return now & 07777;
}

/* The directory in which a path's last name lies. */
static int directory_of(int root, const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : *path ? path : ".";
    if (!slash) return fcntl(root, F_DUPFD_CLOEXEC, 0);
    char *above = strndup(path, (size_t)(slash - path));
    if (!above) abort();
    int fd = open_exact(root, above, O_PATH | O_DIRECTORY, 0), code = errno;
    free(above);
    return errno = code, fd;
}

static int change_mode(int root, const char *path, mode_t mode) {
    const char *name;
    int fd = directory_of(root, path, &name), result = fd < 0 ? -1 : fchmodat(fd, name, mode, 0);
    if (fd >= 0) close(fd);
    return result;
}

/* Have the owner read a file, or look into a directory. */
static int unlock(int root, const char *path) {
    struct stat info;
    const char *name;
    int fd = directory_of(root, path, &name);
    int result = fd < 0 ? -1 : fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW);
    if (fd >= 0) close(fd);
    if (result) return -1;
    mode_t wanted = S_ISDIR(info.st_mode) ? 0700 : S_ISREG(info.st_mode) ? 0400 : 0;
    if ((info.st_mode & wanted) == wanted) return 0;
    if (change_mode(root, path, (info.st_mode | wanted) & 07777)) return -1;
    remember_lock(root, path, info.st_mode);
    return 0;
}

/* As `open_exact`, and where a right is missing, with it taken until `lock_again`. */
int open_unlocked(int root, const char *path, int flags) {
    int fd = open_exact(root, path, flags, 0), result = 0;
    if (fd >= 0 || errno != EACCES) return fd;
    char *part = strdup(path);
    if (!part) abort();
    for (char *slash = strchr(part, '/'); slash && !result; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        result = unlock(root, part);
        *slash = '/';
    }
    if (!result) result = unlock(root, path);
    free(part);
    return result ? -1 : open_exact(root, path, flags, 0);
}

/* What an open descriptor stands for, until `lock_again`, or for good where nothing of its mode is to
   stay. */
static int unlock_open(int root, int fd, mode_t wanted, bool for_good) {
    char link[40], path[PATH_MAX + 1];
    struct stat info;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || fstat(fd, &info)) return -1;
    path[length] = 0;
    mode_t mode = info.st_mode & 07777;
    if ((mode & wanted) == wanted) return 0;
    if (chmod(link, mode | wanted)) return -1;
    if (!for_good) remember_lock(root, path + 1, mode);
    return 0;
}

/* Have the owner pass the directories of a path, links in it included, and read what it leads to, or
   write it: that file's mode is then to be set anew. What is not the owner's stays as it is. */
void unlock_way(int root, const char *path, bool writes) {
    const char *end = path;
    struct stat info;
    int result = 0;
    while (*end && !result) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char *part = strndup(path, (size_t)(end - path));
        if (!part) abort();
        int fd = open_inside(root, part, O_PATH, 0);
        free(part);
        if (fd < 0) return;
        if (!(result = fstat(fd, &info))) {
            bool file = S_ISREG(info.st_mode);
            mode_t wanted = S_ISDIR(info.st_mode) ? 0700 : !file ? 0 : writes ? 0600 : 0400;
            result = unlock_open(root, fd, wanted, file && writes);
        }
        close(fd);
    }
}

/* The last first, as each lies behind those before it. */
void lock_again(void) {
    int code = errno;
    while (count) {
        struct lock *lock = &locks[--count];
        if (change_mode(lock->root, lock->path, lock->mode)) errno = 0;
        free(lock->path);
    }
    errno = code;
}

void forget_locks(void) {
    while (count) free(locks[--count].path);
}
