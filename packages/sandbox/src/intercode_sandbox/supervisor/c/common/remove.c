/* Removes a directory that a sandbox has filled: of any depth, with closed directories in it. Mounts
   in it, and what they show, remain. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define MAX_DEPTH 60  /* levels; deeper directories are moved up before they are removed */

static int empty_directory(int top, int fd, int depth, size_t *moved);

static bool is_mount(int top, const struct stat *info) {
    struct stat own;
    return fstat(top, &own) || own.st_dev != info->st_dev;
}

/* Move a directory to the top, to a name that nothing there has. */
static int move_up(int parent, const char *name, int top, size_t *moved) {
    char other[32];
    struct stat info;
    do snprintf(other, sizeof other, ".moved-%zu", ++*moved);
    while (!fstatat(top, other, &info, AT_SYMLINK_NOFOLLOW));
    return renameat(parent, name, top, other);
}

static int remove_entry(int top, int parent, const char *name, int depth, size_t *moved) {
    struct stat info;
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW)) return -1;
    if (!S_ISDIR(info.st_mode)) return unlinkat(parent, name, 0);
    if (is_mount(top, &info)) return errno = EBUSY, -1;
    if ((info.st_mode & 0700) != 0700 && set_mode(parent, name, 0700)) return -1;
    if (depth > MAX_DEPTH) return move_up(parent, name, top, moved);
    int fd = openat(parent, name, SUBDIRECTORY);
    int result = fd < 0 ? -1 : empty_directory(top, fd, depth + 1, moved);
    if (fd >= 0) close(fd);
    return result ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

/* Remove what can be removed, also after an error. */
static int empty_directory(int top, int fd, int depth, size_t *moved) {
    struct names names;
    int result = list_names(fd, &names);
    if (result) return -1;
    for (size_t i = 0; i < names.count; i++)
        if (remove_entry(top, fd, names.name[i], depth, moved)) result = -1;
    free_names(&names);
    return result;
}

/* Remove a directory with everything in it, however deep. What is added meanwhile may remain. */
int remove_all(int parent, const char *name) {
    size_t moved = 0, before;
    int top = openat(parent, name, SUBDIRECTORY), result;
    if (top < 0 && errno == EACCES && !set_mode(parent, name, 0700))
        top = openat(parent, name, SUBDIRECTORY);
    if (top < 0 || fchmod(top, 0700)) return -1;
    do {
        before = moved;
        result = empty_directory(top, top, 0, &moved);
    } while (moved != before);
    close(top);
    return result ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

/* Remove a file or link of the sandbox, or with `whole` a directory and everything in it. */
int remove_in_root(int root, const char *path, bool whole) {
    char parent[PATH_MAX];
    struct stat above, info;
    size_t length = strlen(path);
    while (length && path[length - 1] == '/') length--;
    if (length >= sizeof parent) return errno = ENAMETOOLONG, -1;
    memcpy(parent, path, length);
    parent[length] = 0;
    char *name = strrchr(parent, '/');
    if (!name || !strcmp(name, "/.") || !strcmp(name, "/..")) return errno = EINVAL, -1;
    *name++ = 0;
    int fd = open_outside_proc(root, *parent ? parent : "/", DIRECTORY, &above);
    if (fd < 0) return -1;
    int result = fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW);
    if (!result && !S_ISDIR(info.st_mode)) result = unlinkat(fd, name, 0);
    else if (!result) {
        errno = !whole ? EISDIR : EBUSY;
        result = !whole || info.st_dev != above.st_dev ? -1 : remove_all(fd, name);
    }
    int code = errno;
    close(fd);
    errno = code;
    return result;
}
