/* Reads and writes files of the sandbox from outside, without following links out of it. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define MAX_DEPTH 200  /* directory levels to visit */

static int close_and_fail(int fd, int code) {
    close(fd);
    errno = code;
    return -1;
}

/* Open a path of the sandbox. Files of /proc are refused, because this process can read more from
   them than the sandbox can. */
int open_outside_proc(int root, const char *path, int flags, struct stat *info) {
    struct stat proc;
    int fd = open_in_root(root, path, flags, 0);
    if (fd < 0) return -1;
    if (fstat(fd, info)) return close_and_fail(fd, errno);
    if (!sandbox.in_chroot && !sandbox.in_domain) {  /* there /proc is an empty directory, or absent */
        if (fstatat(root, "proc", &proc, 0)) return close_and_fail(fd, errno);
        if (info->st_dev == proc.st_dev) return close_and_fail(fd, EACCES);
    }
    return fd;
}

/* Return whether a file is the one that the owner has seen at a path. */
bool has_identity(int fd, const char *identity) {
    char found[64];
    struct stat info;
    if (fstat(fd, &info)) return false;
    snprintf(found, sizeof found, "%llu:%llu", (unsigned long long)info.st_dev,
             (unsigned long long)info.st_ino);
    return !strcmp(found, identity) || (errno = ESTALE, false);
}

/* Open a regular file for reading. */
int open_regular(int root, const char *path) {
    struct stat info;
    int fd = open_outside_proc(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &info);
    if (fd < 0) return -1;
    if (!S_ISREG(info.st_mode)) return close_and_fail(fd, S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
    return fd;
}

static const char *kind_of(mode_t mode) {
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "dir" : S_ISLNK(mode) ? "link"
        : S_ISFIFO(mode) ? "fifo" : S_ISSOCK(mode) ? "socket" : "device";
}

/* Append kind, mode, size, time of the last change of the content in seconds and nanoseconds, and
   target. */
static void append_file(struct text *out, const struct stat *info, int fd, const char *name) {
    char target[PATH_MAX + 1];
    ssize_t length = S_ISLNK(info->st_mode) ? readlinkat(fd, name, target, PATH_MAX) : 0;
    target[length < 0 ? 0 : length] = 0;
    append_format(out, "[\"%s\",%u,%lld,%lld,%ld,", kind_of(info->st_mode), info->st_mode & 07777,
                  (long long)info->st_size, (long long)info->st_mtim.tv_sec,
                  info->st_mtim.tv_nsec);
    append_json_string(out, target);
    append(out, "]", 1);
}

/* Append what a path is. `follow`: of a link, what it leads to. */
int describe_file(int root, const char *path, bool follow, struct text *out) {
    struct stat info;
    int fd = open_outside_proc(root, path, O_PATH | (follow ? 0 : O_NOFOLLOW), &info);
    if (fd < 0) return -1;
    append_format(out, ", \"file\": ");
    append_file(out, &info, fd, "");
    close(fd);
    return 0;
}

/* Append the names in a directory with what each of them is, in the order of their bytes. */
int list_directory(int root, const char *path, struct text *out) {
    struct stat info;
    struct names names;
    int fd = open_outside_proc(root, path, DIRECTORY, &info);
    if (fd < 0) return -1;
    if (list_names(fd, &names)) return close_and_fail(fd, errno);
    int code = 0;
    append_format(out, ", \"files\": {");
    for (size_t i = 0, count = 0; i < names.count && !code; i++) {
        if (fstatat(fd, names.name[i], &info, AT_SYMLINK_NOFOLLOW)) {
            if (errno != ENOENT) code = errno;
            continue;  /* it is gone */
        }
        if (count++) append(out, ",", 1);
        append_json_string(out, names.name[i]);
        append(out, ":", 1);
        append_file(out, &info, fd, names.name[i]);
        if (out->length > MAX_LISTING) code = EFBIG;
    }
    append(out, "}", 1);
    free_names(&names);
    close_and_fail(fd, code);
    return code ? -1 : 0;
}

/* Normalize a path: absolute, without empty parts, `.` and `..`. Links are not resolved. */
static void normalize_path(const char *path, char *out) {
    size_t length = 0;
    while (*path) {
        size_t part = strcspn(path, "/");
        if (part == 2 && path[0] == '.' && path[1] == '.') {
            while (length && out[--length] != '/') {}
        } else if (part && !(part == 1 && *path == '.')) {
            out[length++] = '/';
            memcpy(out + length, path, part);
            length += part;
        }
        path += part + (path[part] == '/');
    }
    out[length] = 0;
}

/* Make the parent directories of a path. */
static int make_parents(int root, char *path) {
    char *last = strrchr(path, '/');
    for (char *slash = last ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int fd = open_in_root(root, path, O_PATH | O_DIRECTORY, 0);
        if (fd < 0 && errno == ENOENT) {
            char *name = strrchr(path, '/');
            *name = 0;
            fd = open_in_root(root, *path ? path : "/", O_PATH | O_DIRECTORY, 0);
            *name = '/';
            if (fd >= 0 && mkdirat(fd, name + 1, 0755)) return close_and_fail(fd, errno);
        }
        if (fd < 0) return -1;
        close(fd);
        *slash = '/';
    }
    return 0;
}

/* Give a file the size of its new content, and room for it. If there is none, it stays as it is. */
static int make_room(int fd, off_t old_size, off_t size) {
    bool full = size > 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) && errno == ENOSPC;
    if (!full && !ftruncate(fd, size)) return 0;
    int code = errno;
    if (ftruncate(fd, old_size)) {}  /* gives back what was reserved behind its end */
    errno = code;
    return -1;
}

/* Write all of `source` to a regular file, and make its parent directories. */
int write_file(int root, const char *path, int source, mode_t mode) {
    char parents[PATH_MAX + 2];
    struct stat info;
    ssize_t sent;
    if (strlen(path) >= PATH_MAX) return errno = ENAMETOOLONG, -1;
    normalize_path(path, parents);
    if (make_parents(root, parents)) return -1;
    int fd = open_in_root(root, path, O_WRONLY | O_CREAT | O_NONBLOCK, mode);
    if (fd < 0) return -1;
    if (fstat(fd, &info)) return close_and_fail(fd, errno);
    if (!S_ISREG(info.st_mode)) return close_and_fail(fd, EINVAL);
    off_t size = lseek(source, 0, SEEK_END);
    if (size < 0 || make_room(fd, info.st_size, size)) return close_and_fail(fd, errno);
    lseek(source, 0, SEEK_SET);
    while ((sent = sendfile(fd, source, NULL, (size_t)1 << 30)) > 0) {}
    if (sent < 0 || fchmod(fd, mode)) return close_and_fail(fd, errno);
    close(fd);
    return 0;
}

/* Visit every directory of a file system in a fixed order. An overlay numbers a directory when
   it is first visited, so `ls -i` would otherwise depend on which of two programs came first. */
void visit_directories(int fd, int depth) {
    struct stat here, below;
    struct names names;
    if (depth > MAX_DEPTH || fstat(fd, &here) || list_directories(fd, &names)) return;
    for (size_t i = 0; i < names.count; i++) {
        int next = openat(fd, names.name[i], DIRECTORY | O_NOFOLLOW);
        if (next < 0) continue;
        if (!fstat(next, &below) && below.st_dev == here.st_dev) visit_directories(next, depth + 1);
        close(next);
    }
    free_names(&names);
}
