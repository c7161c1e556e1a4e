/* Makes the root directory of a sandbox, as root: a copy of the image's layers that belongs to the
   sandbox's user, and directories of this machine, whose files are hard links and belong to root.
   Nobody but root can change those, so sandboxes can share them. */

#define _GNU_SOURCE
#include "chroot/chroot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define MOST_SHARED 64  /* directories of a sandbox that are kept */
#define MOST_RETAINED 24  /* with the same content */
/* Sandboxes share these files, so no other user may write. A set-user-ID bit has no effect there. */
#define SHARED_MODE 01775
#define MAX_DEPTH 60  /* levels of directories of programs */
#define DISK_RESERVE (64 << 20)  /* bytes of the disk that stay free when programs are copied */

/* ------------------------------------------------------------- shared directories */
/* A directory to link or to copy, with its path in the sandbox, and the paths to leave empty. */
struct link { const struct json *hidden; bool copies; char path[4096]; size_t length; };

static int link_directory(struct link *link, int source, int target);

static bool is_hidden(const struct link *link) {
    for (const struct json *v = link->hidden ? link->hidden->first : NULL; v; v = v->next)
        if (!strcmp(v->text, link->path)) return true;
    return false;
}

static int copy_metadata(int target, const char *name, const struct stat *info) {
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    if (!S_ISLNK(info->st_mode) && set_mode(target, name, info->st_mode & SHARED_MODE))
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

static bool has_space(int target, off_t size) {
    struct statfs disk;
    return !fstatfs(target, &disk)
        && (off_t)disk.f_bavail * disk.f_bsize >= size + DISK_RESERVE;
}

static int link_file(const struct link *link, int source, int target, const char *name,
                     const struct stat *info) {
    /* of a file that others could write to, or with more rights, a copy is made */
    bool shareable = !link->copies && !info->st_uid && !(info->st_mode & 06022);
    if (shareable && !linkat(source, name, target, name, 0)) return 0;
    if (link->copies && !has_space(target, info->st_size)) return errno = ENOSPC, -1;
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
    else if (S_ISREG(info.st_mode)) result = link_file(link, source, target, name, &info);
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

/* Give a filled directory to root, with the mode and the times of another. */
static int finish_shared(int fd, const struct stat *info) {
    return fchown(fd, 0, 0) || fchmod(fd, info->st_mode & SHARED_MODE)
        || futimens(fd, (struct timespec[]){info->st_atim, info->st_mtim}) ? -1 : 0;
}

/* Return whether files of one directory can be linked to another, at once. On an overlay, to link a
   file of the image is to copy it and to wait for the disk. */
static bool is_linkable(int from, int to) {
    struct statfs system;
    struct stat source, target;
    return !fstatfs(to, &system) && system.f_type != OVERLAYFS_SUPER_MAGIC
        && !fstat(from, &source) && !fstat(to, &target) && source.st_dev == target.st_dev;
}

/* Copy a directory, unless another process does it first. */
static int make_copies(struct link *link, int retained, const char *name, int source) {
    char unfinished[300];
    snprintf(unfinished, sizeof unfinished, "unfinished-%s-%d", name, (int)getpid());
    if (mkdirat(retained, unfinished, 0755)) return -1;
    int target = openat(retained, unfinished, SUBDIRECTORY), result = target < 0 ? -1 : 0;
    link->copies = true;
    if (!result) result = link_directory(link, source, target);
    link->copies = false;
    if (target >= 0) close(target);
    if (!result) result = renameat(retained, unfinished, retained, name);
    int code = errno;
    if (result) remove_all(retained, unfinished);
    errno = code;
    return result;
}

/* Return the directory whose files are to be linked: `source`, or copies of its files. */
static int open_linked(struct link *link, int retained, const char *key, int source) {
    char name[256];
    if (is_linkable(source, retained)) return dup(source);
    snprintf(name, sizeof name, "copies-%s", key);
    int fd = openat(retained, name, SUBDIRECTORY);
    if (fd < 0 && errno == ENOENT) {
        int result = make_copies(link, retained, name, source), code = errno;
        fd = openat(retained, name, SUBDIRECTORY);
        if (fd < 0 && result) errno = code;
    }
    if (fd >= 0) futimens(fd, NULL);  /* the cache may remove it when it was not used for a day */
    return fd;
}

/* Link a directory of this machine to a path of the tree, where an empty directory lies. */
static int link_shared(int root, int retained, const struct json *shared, const struct json *hidden) {
    const char *path = shared->first->text, *shown = shared->first->next->text;
    const char *key = shared->first->next->next->text;
    struct link *link = calloc(1, sizeof *link);
    struct stat info;
    if (!link) return -1;
    link->hidden = hidden;
    link->length = (size_t)snprintf(link->path, sizeof link->path, "%s", shown);
    int source = open(path, DIRECTORY), target = open_exact(root, shown + 1, DIRECTORY, 0);
    int linked = source < 0 ? -1 : open_linked(link, retained, key, source);
    int result = linked < 0 || target < 0 || fstat(source, &info) ? fail("%s", shown) : 0;
    if (!result) result = link_directory(link, linked, target);
    if (!result && finish_shared(target, &info)) result = fail("%s", shown);
    if (source >= 0) close(source);
    if (linked >= 0) close(linked);
    if (target >= 0) close(target);
    free(link);
    return result;
}

/* Such a directory takes seconds to make and cannot be changed, so it is kept for the next sandbox. */
static bool is_retained(const char *name, const char *key) {
    size_t length = strlen(key);
    return !strncmp(name, key, length) && name[length] == '.';
}

/* Open the directory of the tree that holds a path, and return the last name. Commands may have
   replaced a directory of the path by a link that leads out of the tree. */
static int open_parent(int root, const char *shown, const char **name) {
    char parent[4096];
    const char *slash = strrchr(shown, '/');
    *name = slash + 1;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - shown), shown);
    return open_exact(root, *parent ? parent + 1 : "", DIRECTORY, 0);
}

/* Move a kept directory to a name. Return whether there was one. */
static bool take_retained(int retained, const char *key, int parent, const char *name) {
    struct names names;
    bool taken = false;
    if (!list_names(retained, &names))
        for (size_t i = 0; !taken && i < names.count; i++)
            taken = is_retained(names.name[i], key)
                && !renameat(retained, names.name[i], parent, name);
    free_names(&names);
    return taken;
}

static uint64_t shared_inodes[MOST_SHARED];  /* of the directories shown, in their order */

/* Show a directory of this machine in place of an empty one: `shared` is a list of its path, the path in
   the sandbox, and a name for its content. */
static int add_shared(int root, int retained, const struct json *shared, const struct json *hidden,
                      uint64_t *inode) {
    const char *shown = shared->first->next->text, *name;
    const char *key = shared->first->next->next->text;
    struct stat info;
    int parent = open_parent(root, shown, &name), result = parent < 0 ? -1 : 0;
    if (!result && !take_retained(retained, key, parent, name))
        result = link_shared(root, retained, shared, hidden);
    if (!result) result = fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW);
    if (parent >= 0) close(parent);
    if (result) return fail("%s", shown);
    *inode = info.st_ino;
    return 0;
}

/* Give a directory to root, so that it stays empty. */
static int close_directory(int root, const char *name) {
    if (fchownat(root, name, 0, 0, AT_SYMLINK_NOFOLLOW)) return fail("/%s", name);
    return set_mode(root, name, 0555) ? fail("/%s", name) : 0;
}

/* Show a directory of this machine again where nothing is, because it was moved or removed; or an
   empty one of root. */
int show_again(int root, int retained, const struct json *spec, const char *path) {
    if (!strcmp(path, "proc") || !strcmp(path, "sys"))
        return mkdirat(root, path, 0755) || close_directory(root, path) ? -1 : 0;
    const struct json *shared = json_get(spec, "shared"), *v = shared ? shared->first : NULL;
    const char *name;
    size_t i = 0;
    for (; v && strcmp(v->first->next->text + 1, path); v = v->next) i++;
    if (!v || i >= MOST_SHARED) return errno = EINVAL, -1;
    int parent = open_parent(root, v->first->next->text, &name);
    int result = parent < 0 ? -1 : mkdirat(parent, name, 0755);
    if (parent >= 0) close(parent);
    return result ? -1 : add_shared(root, retained, v, json_get(spec, "hidden"), &shared_inodes[i]);
}

/* Keep the shared directories of a tree that is going to be removed, unless they were moved. */
void retain_shared(int root, int retained, const struct json *spec) {
    const struct json *shared = json_get(spec, "shared");
    size_t i = 0;
    struct names names;
    for (const struct json *v = shared ? shared->first : NULL; v && i < MOST_SHARED; v = v->next, i++) {
        const char *shown = v->first->next->text, *key = v->first->next->next->text;
        char name[256];
        struct stat info;
        size_t count = 0;
        int fd = open_exact(root, shown + 1, DIRECTORY, 0);
        bool same = fd >= 0 && !fstat(fd, &info) && info.st_ino == shared_inodes[i] && !info.st_uid;
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
    size_t i = 0;
    for (const struct json *v = shared ? shared->first : NULL; v; v = v->next) {
        if (i == MOST_SHARED) return errno = E2BIG, fail("%zu shared directories", i + 1);
        if (add_shared(root, retained, v, hidden, &shared_inodes[i++])) return -1;
    }
    if (close_directory(root, "proc") || close_directory(root, "sys") || make_devices(root)) return -1;
    if (fchown(root, sandbox.user, sandbox.user) || fchmod(root, 0755)) return fail("/");
    if (count && !fstat(layers[0], &info)
        && futimens(root, (struct timespec[]){info.st_atim, info.st_mtim}))
        return fail("/");
    return 0;
}
