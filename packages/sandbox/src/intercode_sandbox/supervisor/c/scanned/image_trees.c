/* The directories of which a container's image was made, the topmost first, merged as an
   overlay merges them: a character device marks a deleted path, and an opaque directory hides
   those below it. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int trees[MOST_FDS];
static size_t tree_count;

void set_image_trees(const int *fds, size_t count) {
    memcpy(trees, fds, count * sizeof *fds);
    tree_count = count;
}

/* Open a path of the image, or fail with ENOENT. Callers ask only for paths that existed, so
   the first tree that has the path is the one that was visible. */
int open_in_image(const char *path, int flags) {
    for (size_t i = 0; i < tree_count; i++) {
        int fd = open_exact(trees[i], path, flags | O_NOFOLLOW, 0);
        if (fd < 0 && errno == EACCES && sandbox.in_chroot)
            fd = open_as_guard(trees[i], path, flags | O_NOFOLLOW);
        if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR)) return fd;
    }
    errno = ENOENT;
    return -1;
}

int stat_in_image(const char *directory, const char *name, struct stat *out) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", name);
    if ((size_t)length >= sizeof path) return errno = ENAMETOOLONG, -1;
    int fd = open_in_image(path, O_PATH), result = fd < 0 ? -1 : fstat(fd, out);
    if (fd >= 0) close(fd);
    return result || (S_ISCHR(out->st_mode) && !out->st_rdev) ? -1 : 0;
}

/* Return whether an overlay merges a directory from several trees. */
bool is_merged(const char *path) {
    size_t count = 0;
    for (size_t i = 0; file_index.covers_subtree && i < tree_count; i++) {
        int fd = open_exact(trees[i], path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
        if (fd < 0) continue;
        close(fd);
        count++;
    }
    return count > 1;
}

/* Return whether a tree hides what the trees below it have at a path. */
static bool hides_lower(int tree, const char *path) {
    char part[PATH_MAX];
    const char *end = path;
    while (*end) {
        end += strcspn(end, "/");
        if ((size_t)(end - path) >= sizeof part) return true;
        memcpy(part, path, (size_t)(end - path));
        part[end - path] = 0;
        int fd = open_exact(tree, part, DIRECTORY | O_NOFOLLOW, 0);
        if (fd < 0) return errno != ENOENT;  /* a file in place of the directory */
        bool opaque = is_opaque(fd);
        close(fd);
        if (opaque) return true;
        end += *end == '/';
    }
    return false;
}

static void merge_names(struct names *into, struct names *more) {
    size_t known = into->count;
    struct names sorted = *into;
    into->name = realloc(into->name, (known + more->count + 1) * sizeof *into->name);
    if (!into->name) abort();
    sorted.name = into->name;
    for (size_t i = 0; i < more->count; i++) {
        if (contains_name(&sorted, more->name[i])) free(more->name[i]);
        else into->name[into->count++] = more->name[i];
    }
    free(more->name);
    sort_names(into);
}

/* List the names in a directory of the image, sorted, including deleted ones. */
int list_in_image(const char *path, struct names *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < tree_count; i++) {
        struct names names;
        int fd = open_exact(trees[i], path, DIRECTORY | O_NOFOLLOW, 0);
        if (fd >= 0) {
            int result = list_names(fd, &names);
            close(fd);
            if (result) return -1;
            merge_names(out, &names);
        }
        if (hides_lower(trees[i], path)) break;
    }
    return 0;
}
