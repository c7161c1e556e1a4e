/* Gives the supervisor of a container access to files whose mode forbids their owner to read them.
   The supervisor runs as that owner, so it can change a mode and restore it afterwards. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mode_record { int root; char *path; mode_t mode; };

static struct mode_record *records;
static size_t count, capacity;

/* Open a path below a directory, without following links or entering other mounts. Splits a
   path that is longer than the kernel accepts. */
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
    return open_resolved(root, *path ? path : ".", &how);
}

/* Record the mode that `restore_modes` gives a path. */
void record_mode(int root, const char *path, mode_t mode) {
    records = ensure_capacity(records, count, &capacity, sizeof *records);
    records[count++] = (struct mode_record){root, strdup(path), mode & 07777};
}

/* Return the mode that a path had before access was granted; `now` is its current mode. */
mode_t original_mode(int root, const char *path, mode_t now) {
    for (size_t i = 0; i < count; i++)
        if (records[i].root == root && !strcmp(records[i].path, path)) return records[i].mode;
    return now & 07777;
}

/* Open the parent directory of a path. Set `name` to the last part of the path. */
static int open_parent_of(int root, const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : *path ? path : ".";
    if (!slash) return fcntl(root, F_DUPFD_CLOEXEC, 0);
    char *parent = strndup(path, (size_t)(slash - path));
    if (!parent) abort();
    int fd = open_exact(root, parent, O_PATH | O_DIRECTORY, 0), code = errno;
    free(parent);
    return errno = code, fd;
}

static int change_mode(int root, const char *path, mode_t mode) {
    const char *name;
    int fd = open_parent_of(root, path, &name), result = fd < 0 ? -1 : set_mode(fd, name, mode);
    if (fd >= 0) close(fd);
    return result;
}

/* Let the owner read a file, or read, change and enter a directory, until `restore_modes`. */
static int grant_access(int root, const char *path) {
    struct stat info;
    const char *name;
    int fd = open_parent_of(root, path, &name);
    int result = fd < 0 ? -1 : fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW);
    if (fd >= 0) close(fd);
    if (result) return -1;
    mode_t wanted = S_ISDIR(info.st_mode) ? 0700 : S_ISREG(info.st_mode) ? 0400 : 0;
    if ((info.st_mode & wanted) == wanted) return 0;
    if (change_mode(root, path, (info.st_mode | wanted) & 07777)) return -1;
    record_mode(root, path, info.st_mode);
    return 0;
}

/* Open a path as `open_exact` does. If access is denied, grant it until `restore_modes`. */
int open_granted(int root, const char *path, int flags) {
    int fd = open_exact(root, path, flags, 0), result = 0;
    if (fd >= 0 || errno != EACCES) return fd;
    if (sandbox.in_chroot && root != sandbox.root) return open_as_guard(root, path, flags);
    char *part = strdup(path);
    if (!part) abort();
    for (char *slash = strchr(part, '/'); slash && !result; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        result = grant_access(root, part);
        *slash = '/';
    }
    if (!result) result = grant_access(root, path);
    free(part);
    return result ? -1 : open_exact(root, path, flags, 0);
}

/* Grant access to an open file until `restore_modes`. `for_good`: never restore its mode, because
   the caller sets a new one. */
static int grant_open_access(int root, int fd, mode_t wanted, bool for_good) {
    char link[20], path[PATH_MAX + 1];
    struct stat info;
    snprintf(link, sizeof link, "%d", fd);
    int fds = open_proc("self/fd", O_PATH | O_DIRECTORY);
    ssize_t length = fds < 0 ? -1 : readlinkat(fds, link, path, sizeof path - 1);
    int result = length <= 0 || fstat(fd, &info) ? -1 : 0;
    mode_t mode = result ? 0 : info.st_mode & 07777;
    if (!result && (mode & wanted) != wanted) {
        path[length] = 0;
        result = fchmodat(fds, link, mode | wanted, 0);
        if (!result && !for_good) record_mode(root, path + sandbox.root_length + 1, mode);
    }
    int code = errno;
    if (fds >= 0) close(fds);
    errno = code;
    return result;
}

/* Grant access to the directories of a path, following links, and to the file itself, for reading
   or for writing. The mode of a written file is not restored, because the caller sets a new one.
   Files of other users are left alone. */
void grant_path_access(int root, const char *path, bool writes) {
    const char *end = path;
    struct stat info;
    int result = 0;
    while (*end && !result) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char *part = strndup(path, (size_t)(end - path));
        if (!part) abort();
        int fd = open_in_root(root, part, O_PATH, 0);
        free(part);
        if (fd < 0) return;
        if (!(result = fstat(fd, &info))) {
            bool file = S_ISREG(info.st_mode);
            mode_t wanted = S_ISDIR(info.st_mode) ? 0700 : !file ? 0 : writes ? 0600 : 0400;
            result = grant_open_access(root, fd, wanted, file && writes);
        }
        close(fd);
    }
}

/* Grant access to the directories above a path alone: what is removed keeps its mode. */
void grant_parent_access(int root, const char *path) {
    size_t length = strlen(path);
    while (length && path[length - 1] == '/') length--;
    while (length && path[length - 1] != '/') length--;
    char *parent = strndup(path, length);
    if (!parent) abort();
    grant_path_access(root, parent, false);
    free(parent);
}

/* Restore all recorded modes, the last change first: a path may be reachable only through a
   directory whose mode was changed before. */
void restore_modes(void) {
    int code = errno;
    while (count) {
        struct mode_record *mode_record = &records[--count];
        if (change_mode(mode_record->root, mode_record->path, mode_record->mode)) errno = 0;
        free(mode_record->path);
    }
    errno = code;
}

/* Forget all recorded modes without restoring them. */
void discard_modes(void) {
    while (count) free(records[--count].path);
}
