/* Reads and writes files of the box from outside without being led astray by links.
   See box/files.py. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define DEEPEST 200  /* directories within each other, that are looked at beforehand */

static int refused(int fd, int code) {
    close(fd);
    errno = code;
    return -1;
}

/* A descriptor for reading a regular file; not what the kernel makes up in /proc: with this
   process's rights it would tell more than to the box. */
int open_regular(int root, const char *path) {
    struct stat info, proc;
    int fd = open_inside(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) return -1;
    if (fstat(fd, &info) || fstatat(root, "proc", &proc, 0)) return refused(fd, errno);
    if (info.st_dev == proc.st_dev) return refused(fd, EACCES);
    if (!S_ISREG(info.st_mode)) return refused(fd, S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
    return fd;
}

/* A path from the root without empty parts, `.` and `..`, which are taken as text. */
static void normal(const char *path, char *out) {
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

/* The directories that a file needs, above the last slash of its path. */
static int make_parents(int root, char *path) {
    char *last = strrchr(path, '/');
    for (char *slash = last ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int fd = open_inside(root, path, O_PATH | O_DIRECTORY, 0);
        if (fd < 0 && errno == ENOENT) {
            char *name = strrchr(path, '/');
            *name = 0;
            fd = open_inside(root, *path ? path : "/", O_PATH | O_DIRECTORY, 0);
            *name = '/';
            if (fd >= 0 && mkdirat(fd, name + 1, 0755)) return refused(fd, errno);
        }
        if (fd < 0) return -1;
        close(fd);
        *slash = '/';
    }
    return 0;
}

/* Write all of `source` to a regular file, making the directories that it needs. */
int write_file(int root, const char *path, int source, mode_t mode) {
    char parents[PATH_MAX + 2];
    struct stat info;
    ssize_t sent;
    if (strlen(path) >= PATH_MAX) return errno = ENAMETOOLONG, -1;
    normal(path, parents);
    if (make_parents(root, parents)) return -1;
    int fd = open_inside(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, mode);
    if (fd < 0) return -1;
    if (fstat(fd, &info)) return refused(fd, errno);
    if (!S_ISREG(info.st_mode)) return refused(fd, EINVAL);
    lseek(source, 0, SEEK_SET);
    while ((sent = sendfile(fd, source, NULL, (size_t)1 << 30)) > 0) {}
    if (sent < 0 || fchmod(fd, mode)) return refused(fd, errno);
    close(fd);
    return 0;
}

/* Look at every directory of a file system in one order: an overlay numbers a directory when it is
   first looked at, so that `ls -i` would else tell which of two programs came first. */
void look_around(int fd, int depth) {
    struct stat here, below;
    struct names names;
    if (depth > DEEPEST || fstat(fd, &here) || directories_in(fd, &names)) return;
    for (size_t i = 0; i < names.count; i++) {
        int next = openat(fd, names.name[i], DIRECTORY | O_NOFOLLOW);
        if (next < 0) continue;
        if (!fstat(next, &below) && below.st_dev == here.st_dev) look_around(next, depth + 1);
        close(next);
    }
    free_names(&names);
}
