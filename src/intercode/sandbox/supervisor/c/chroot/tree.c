/* Makes the root directory of a sandbox, as root: a copy of the image's layers that belongs to the
   sandbox's user, and directories of this machine, whose files are hard links and belong to root.
   Nobody but root can change those, so sandboxes can share them. */

#define _GNU_SOURCE
#include "chroot/chroot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define MOST_SHARED 64  /* directories of a sandbox that are kept */
#define MOST_RETAINED 24  /* with the same content */
/* Sandboxes share these files, so no other user may write. A set-user-ID bit has no effect there. */
#define SHARED_MODE 01775
#define MAX_DEPTH 60  /* levels; deeper directories are moved up before they are removed */

/* ------------------------------------------------------------- shared directories */
/* A directory to link, with its path in the sandbox, and the paths to leave empty. */
struct link { const struct json *hidden; char path[4096]; size_t length; };

static int link_directory(struct link *link, int source, int target);

static bool is_hidden(const struct link *link) {
    for (const struct json *v = link->hidden ? link->hidden->first : NULL; v; v = v->next)
        if (!strcmp(v->text, link->path)) return true;
    return false;
}

static int copy_metadata(int target, const char *name, const struct stat *info) {
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    if (!S_ISLNK(info->st_mode) && fchmodat(target, name, info->st_mode & SHARED_MODE, 0))
        return -1;
    return utimensat(target, name, times, AT_SYMLINK_NOFOLLOW);
}

static int make_file(int source, int target, const char *name, const struct stat *info) {
    int from = source < 0 ? -1 : openat(source, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int to = openat(target, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int result = (source >= 0 && from < 0) || to < 0 ? -1 : 0;
    if (!result && from >= 0) result = copy_content(from, to);
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    return result ? -1 : copy_metadata(target, name, info);
}

static int link_file(int source, int target, const char *name, const struct stat *info) {
    /* of a file that others could write to, or with more rights, a copy is made */
    if (!info->st_uid && !(info->st_mode & 06022) && !linkat(source, name, target, name, 0)) return 0;
    return make_file(source, target, name, info);
}

static int make_link(int source, int target, const char *name, const struct stat *info) {
    char text[4096];
    ssize_t length = readlinkat(source, name, text, sizeof text - 1);
    if (length < 0) return -1;
    text[length] = 0;
    return symlinkat(text, target, name) ? -1 : copy_metadata(target, name, info);
}

static int link_subdirectory(struct link *link, int source, int target, const char *name,
                             const struct stat *info, bool hidden) {
    if (mkdirat(target, name, 0755)) return -1;
    int inner = openat(source, name, SUBDIRECTORY), outer = openat(target, name, SUBDIRECTORY);
    int result = inner < 0 || outer < 0 ? -1 : hidden ? 0 : link_directory(link, inner, outer);
    if (inner >= 0) close(inner);
    if (outer >= 0) close(outer);
    return result ? -1 : copy_metadata(target, name, info);
}

static int link_entry(struct link *link, int source, int target, const char *name) {
    struct stat info;
    size_t length = link->length, more = strlen(name) + 1;
    if (fstatat(source, name, &info, AT_SYMLINK_NOFOLLOW)) return errno == ENOENT ? 0 : -1;
    if (length + more >= sizeof link->path) return 0;
    snprintf(link->path + length, sizeof link->path - length, "/%s", name);
    link->length += more;
    bool hidden = is_hidden(link);
    int result = 0;
    if (S_ISDIR(info.st_mode)) result = link_subdirectory(link, source, target, name, &info, hidden);
    else if (S_ISREG(info.st_mode) && hidden) result = make_file(-1, target, name, &info);
    else if (S_ISREG(info.st_mode)) result = link_file(source, target, name, &info);
    else if (S_ISLNK(info.st_mode)) result = make_link(source, target, name, &info);
    if (result) fail("%s", link->path);
    link->path[link->length = length] = 0;
    return result;
}

static int link_directory(struct link *link, int source, int target) {
    struct names names;
    int result = list_names(source, &names);
    for (size_t i = 0; !result && i < names.count; i++)
        result = link_entry(link, source, target, names.name[i]);
    free_names(&names);
    return result;
}

/* Link a directory of this machine to a path of the tree, where an empty directory lies. */
static int link_shared(int root, const char *path, const char *shown, const struct json *hidden) {
    struct link *link = calloc(1, sizeof *link);
    struct stat info;
    if (!link) return -1;
    link->hidden = hidden;
    link->length = (size_t)snprintf(link->path, sizeof link->path, "%s", shown);
    int source = open(path, DIRECTORY), target = open_exact(root, shown + 1, DIRECTORY, 0);
    int result = source < 0 || target < 0 || fstat(source, &info) ? fail("%s", shown) : 0;
    if (!result) result = link_directory(link, source, target);
    if (!result && (fchown(target, 0, 0) || fchmod(target, info.st_mode & SHARED_MODE)
                    || futimens(target, (struct timespec[]){info.st_atim, info.st_mtim})))
        result = fail("%s", shown);
    if (source >= 0) close(source);
    if (target >= 0) close(target);
    free(link);
    return result;
}

/* Such a directory takes seconds to make and cannot be changed, so it is kept for the next sandbox. */
static bool is_retained(const char *name, const char *key) {
    size_t length = strlen(key);
    return !strncmp(name, key, length) && name[length] == '.';
}

/* Move a kept directory to a path of the tree. Return whether there was one. */
static bool take_retained(int retained, const char *key, int root, const char *shown) {
    struct names names;
    bool taken = false;
    if (!list_names(retained, &names))
        for (size_t i = 0; !taken && i < names.count; i++)
            taken = is_retained(names.name[i], key) && !renameat(retained, names.name[i], root, shown + 1);
    free_names(&names);
    return taken;
}

static struct { uint64_t inodes[MOST_SHARED]; size_t count; } shared_directories;

/* Show a directory of this machine: `shared` is a list of its path, the path in the sandbox, and a
   name for its content. */
static int add_shared(int root, int retained, const struct json *shared, const struct json *hidden) {
    const char *path = shared->first->text, *shown = shared->first->next->text;
    const char *key = shared->first->next->next->text;
    struct stat info;
    if (!take_retained(retained, key, root, shown) && link_shared(root, path, shown, hidden)) return -1;
    if (fstatat(root, shown + 1, &info, AT_SYMLINK_NOFOLLOW)) return fail("%s", shown);
    if (shared_directories.count < MOST_SHARED)
        shared_directories.inodes[shared_directories.count++] = info.st_ino;
    return 0;
}

/* Keep the shared directories of a tree that is going to be removed, unless they were moved. */
void retain_shared(int root, int retained, const struct json *spec) {
    const struct json *shared = json_get(spec, "shared");
    size_t i = 0;
    struct names names;
    for (const struct json *v = shared ? shared->first : NULL; v; v = v->next, i++) {
        const char *shown = v->first->next->text, *key = v->first->next->next->text;
        char name[256];
        struct stat info;
        size_t count = 0;
        int fd = i < shared_directories.count ? open_exact(root, shown + 1, DIRECTORY, 0) : -1;
        bool same = fd >= 0 && !fstat(fd, &info) && info.st_ino == shared_directories.inodes[i]
            && !info.st_uid;
        if (fd >= 0) close(fd);
        if (!same || list_names(retained, &names)) continue;
        for (size_t n = 0; n < names.count; n++) count += is_retained(names.name[n], key);
        free_names(&names);
        snprintf(name, sizeof name, "%s.%llu", key, (unsigned long long)info.st_ino);
        if (count < MOST_RETAINED) renameat(root, shown + 1, retained, name);
    }
}

/* -------------------------------------------------------------------- programs */
/* Return whether sandboxes may share a file: everybody may read it, and nobody but root change it. */
static bool is_shareable(const struct stat *info) {
    mode_t executable = info->st_mode & 0111;
    return S_ISREG(info->st_mode) && (info->st_mode & 0444) == 0444 && !(info->st_mode & 06002)
        && (!executable || executable == 0111) && info->st_size > 0;
}

static int copy_shareable(int source, int target, int depth);

static bool is_program_directory(const char *name) {
    static const char *const names[] = {"bin", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static int copy_program(int source, int target, const char *name, int depth) {
    struct stat info;
    if (fstatat(source, name, &info, AT_SYMLINK_NOFOLLOW)) return -1;
    if (is_shareable(&info)) return make_file(source, target, name, &info);
    if (!S_ISDIR(info.st_mode) || depth > MAX_DEPTH) return 0;
    if (mkdirat(target, name, 0755)) return -1;
    int inner = openat(source, name, SUBDIRECTORY), outer = openat(target, name, SUBDIRECTORY);
    int result = inner < 0 || outer < 0 ? -1 : copy_shareable(inner, outer, depth + 1);
    if (inner >= 0) close(inner);
    if (outer >= 0) close(outer);
    return result;
}

static int copy_shareable(int source, int target, int depth) {
    struct names names;
    int result = list_names(source, &names);
    for (size_t i = 0; !result && i < names.count; i++)
        if (depth || is_program_directory(names.name[i]))
            result = copy_program(source, target, names.name[i], depth);
    free_names(&names);
    return result;
}

/* Copy the files below the program directories of a layer that sandboxes may share, for root. */
void copy_programs(const char *layer, const char *directory) {
    int source = open(layer, DIRECTORY), target = open(directory, DIRECTORY);
    int result = source < 0 || target < 0 ? -1 : copy_shareable(source, target, 0);
    if (result) perror(layer);
    _exit(result ? 1 : 0);
}

/* --------------------------------------------------------------------- devices */
static int make_devices(int root) {
    static const struct { const char *name; unsigned major, minor; } nodes[] = {
        {"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9},
        {"tty", 5, 0},
    };
    static const char *const links[][2] = {
        {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
        {"/proc/self/fd/2", "stderr"},
    };
    int dev = open_exact(root, "dev", DIRECTORY, 0), result = dev < 0 ? fail("/dev") : 0;
    for (size_t i = 0; !result && i < sizeof nodes / sizeof *nodes; i++)
        if (mknodat(dev, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor))
            || fchmodat(dev, nodes[i].name, 0666, 0))
            result = fail("/dev/%s", nodes[i].name);
    int null = result ? -1 : openat(dev, "null", O_RDWR | O_CLOEXEC);
    if (!result && null < 0) result = fail("devices in the cache");
    if (null >= 0) close(null);
    for (size_t i = 0; !result && i < sizeof links / sizeof *links; i++)
        if (symlinkat(links[i][0], dev, links[i][1])) result = fail("/dev/%s", links[i][1]);
    if (!result && (mkdirat(dev, "shm", 0700) || fchownat(dev, "shm", sandbox.user, sandbox.user, 0)
                    || fchmodat(dev, "shm", 01777, 0)
                    || fchown(dev, sandbox.own_user, sandbox.user) || fchmod(dev, 0755)))
        result = fail("/dev");
    if (dev >= 0) close(dev);
    return result;
}

/* ------------------------------------------------------------------------ tree */
/* Give a directory to root, so that it stays empty. */
static int close_directory(int root, const char *name) {
    if (fchownat(root, name, 0, 0, AT_SYMLINK_NOFOLLOW)) return fail("/%s", name);
    return fchmodat(root, name, 0555, 0) ? fail("/%s", name) : 0;
}

/* Fill an empty directory. `layers`: the topmost first; `programs`: of each, a directory with files
   to link, or -1. `retained`: the directory of those that `retain_shared` kept. */
int build_tree(int root, int retained, const struct json *spec, const int *layers, size_t count,
               const int *programs) {
    const struct json *hidden = json_get(spec, "hidden"), *shared = json_get(spec, "shared");
    struct stat info;
    for (size_t i = count; i-- > 0;) {
        begin_merge(sandbox.user, programs[i]);
        if (copy_tree(layers[i], root, 0)) return -1;
    }
    for (const struct json *v = shared ? shared->first : NULL; v; v = v->next)
        if (add_shared(root, retained, v, hidden)) return -1;
    if (close_directory(root, "proc") || close_directory(root, "sys") || make_devices(root)) return -1;
    if (fchown(root, sandbox.user, sandbox.user) || fchmod(root, 0755)) return fail("/");
    if (count && !fstat(layers[0], &info)
        && futimens(root, (struct timespec[]){info.st_atim, info.st_mtim}))
        return fail("/");
    return 0;
}

static int empty_directory(int top, int fd, int depth, size_t *moved);

static int remove_entry(int top, int parent, const char *name, int depth, size_t *moved) {
    struct stat info;
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW)) return -1;
    if (!S_ISDIR(info.st_mode)) return unlinkat(parent, name, 0);
    if (depth > MAX_DEPTH) {
        char other[32];
        snprintf(other, sizeof other, ".moved-%zu", ++*moved);
        return renameat(parent, name, top, other);
    }
    int fd = openat(parent, name, SUBDIRECTORY);
    int result = fd < 0 ? -1 : empty_directory(top, fd, depth + 1, moved);
    if (fd >= 0) close(fd);
    return result ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

static int empty_directory(int top, int fd, int depth, size_t *moved) {
    struct names names;
    int result = list_names(fd, &names);
    for (size_t i = 0; !result && i < names.count; i++)
        result = remove_entry(top, fd, names.name[i], depth, moved);
    free_names(&names);
    return result;
}

/* Remove a directory with everything in it, however deep. Nothing else may change it meanwhile. */
int remove_all(int parent, const char *name) {
    size_t moved = 0, before;
    int top = openat(parent, name, SUBDIRECTORY), result = top < 0 ? -1 : 0;
    do {
        before = moved;
        if (!result) result = empty_directory(top, top, 0, &moved);
    } while (!result && moved != before);
    if (top >= 0) close(top);
    return result ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}
