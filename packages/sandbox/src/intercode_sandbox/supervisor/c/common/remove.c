/* Removes a directory that a sandbox has filled: of any depth, with closed directories in it. Mounts
   in it, and what they show, remain. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A directory that is being emptied. It is not open while one below it is: a sandbox can make more
   levels than a process may open files. */
struct level {
    struct names names;
    size_t next;
    struct stat info;  /* from before its mode was changed */
};

static bool is_closed(const struct stat *info) { return (info->st_mode & 0700) != 0700; }

/* Open a directory that is no mount, and let its owner empty it. */
static int enter(int parent, const char *name, struct level *level) {
    struct open_how how = {
        .flags = O_PATH | DIRECTORY | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    memset(level, 0, sizeof *level);
    int path = open_resolved(parent, name, &how), fd = -1;
    if (path < 0) return errno = errno == EXDEV ? EBUSY : errno, -1;
    if (!fstat(path, &level->info)) {
        if (is_closed(&level->info)) set_open_mode(path, (level->info.st_mode | 0700) & 07777);
        fd = openat(path, ".", DIRECTORY);
    }
    int code = errno;
    if (fd < 0 && is_closed(&level->info)) set_open_mode(path, level->info.st_mode & 07777);
    close(path);
    errno = code;
    if (fd >= 0 && list_names(fd, &level->names)) {  /* to remove it reports what remains */
        free_names(&level->names);
        clear_error();
    }
    return fd;
}

/* Open the directory above, unless the one below was moved to another. */
static int open_above(int below, const struct level *level) {
    struct stat info;
    int fd = openat(below, "..", O_PATH | DIRECTORY);
    if (fd >= 0 && !fstat(fd, &info) && info.st_dev == level->info.st_dev
        && info.st_ino == level->info.st_ino)
        return fd;
    if (fd >= 0) close(fd);
    return errno = ENOTEMPTY, -1;
}

/* Keep the first error. What another process has removed or replaced meanwhile is none. */
static void note_error(int *first) {
    if (!*first && errno != ENOENT && errno != ENOTDIR && errno != EISDIR && errno != ELOOP)
        *first = errno;
}

/* Remove a directory with everything in it, however deep, or what can be removed. What is added
   meanwhile may remain. */
int remove_all(int parent, const char *name) {
    size_t depth = 0, capacity = 0;
    struct level *levels = ensure_capacity(NULL, 0, &capacity, sizeof *levels);
    int fd = enter(parent, name, levels), first = 0, result = -1;
    if (fd < 0) first = errno;
    while (fd >= 0) {
        struct level *level = &levels[depth];
        if (level->next < level->names.count) {
            const char *entry = level->names.name[level->next++];
            if (!unlinkat(fd, entry, 0)) continue;
            levels = ensure_capacity(levels, depth + 1, &capacity, sizeof *levels);
            int below = errno == EISDIR ? enter(fd, entry, &levels[depth + 1]) : -1;
            if (below < 0) {
                note_error(&first);
                continue;
            }
            close(fd);
            fd = below;
            depth++;
            continue;
        }
        int above = depth ? open_above(fd, level - 1) : parent;
        const char *own = depth ? level[-1].names.name[level[-1].next - 1] : name;
        result = above < 0 ? -1 : unlinkat(above, own, AT_REMOVEDIR);
        if (result) {
            note_error(&first);
            if (errno == ENOENT && !depth) result = 0;
            else if (is_closed(&level->info)) set_open_mode(fd, level->info.st_mode & 07777);
        }
        free_names(&level->names);
        close(fd);
        fd = depth ? above : -1;
        if (fd >= 0) depth--;
    }
    while (depth) free_names(&levels[--depth].names);
    free(levels);
    return result ? errno = first ? first : ENOTEMPTY, -1 : 0;
}

/* Remove a file or link of the sandbox, or with `whole` a directory and everything in it. */
int remove_in_root(int root, const char *path, bool whole) {
    char parent[PATH_MAX];
    struct stat info;
    size_t length = strlen(path);
    while (length && path[length - 1] == '/') length--;
    if (length >= sizeof parent) return errno = ENAMETOOLONG, -1;
    bool slash = path[length];
    memcpy(parent, path, length);
    parent[length] = 0;
    char *name = strrchr(parent, '/');
    if (!name || !strcmp(name, "/.") || !strcmp(name, "/..")) return errno = EINVAL, -1;
    *name++ = 0;
    int fd = open_outside_proc(root, *parent ? parent : "/", DIRECTORY, &info);
    if (fd < 0) return -1;
    int result = fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW);
    if (!result && S_ISDIR(info.st_mode)) result = whole ? remove_all(fd, name) : (errno = EISDIR, -1);
    else if (!result) result = slash ? (errno = ENOTDIR, -1) : unlinkat(fd, name, 0);
    int code = errno;
    close(fd);
    errno = code;
    return result;
}
