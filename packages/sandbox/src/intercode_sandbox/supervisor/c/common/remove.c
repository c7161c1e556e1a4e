/* Removes a directory that a sandbox has filled: of any depth, with closed directories in it. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define MAX_DEPTH 60  /* levels; deeper directories are moved up before they are removed */

static int empty_directory(int top, int fd, int depth, size_t *moved);

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

/* Remove a directory with everything in it, however deep. Nothing else may change it meanwhile. */
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
