/* Restores a container's files to those at the start, or copies those of another sandbox. Nothing
   may run in either sandbox during the call. Changed files are deleted and created again, not
   overwritten, so that a process with an open descriptor keeps the deleted file. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NANOSECONDS 1000000000LL
/* of a directory that is made again; a new container is faster for a larger one */
#define MAX_REMADE_FILES 2000
#define MAX_REMADE_BYTES (4 << 20)

static int64_t newest_change;  /* the latest change time set here */
static bool keeps_traces;  /* a restored directory has another shape than at the start */
static char traced[PATH_MAX];  /* its path */

static struct timespec to_timespec(int64_t nanoseconds) {
    return (struct timespec){nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS};
}

/* Return whether opening failed because a parent is missing or not a directory. */
static bool is_missing(void) {
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
}

/* Let the owner write in a directory. `finish_directory` restores the mode. */
static int make_writable(int fd) {
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) return -1;
    return (info.st_mode & 0700) == 0700 ? 0 : fchmod(fd, (info.st_mode | 0700) & 07777);
}

/* Open the directory that holds a path of the sandbox, and return the last name. */
static int open_parent(const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    char *parent_path = strndup(path, slash ? (size_t)(slash - path) : 0);
    if (!parent_path) abort();
    int fd = open_granted(sandbox.root, parent_path, DIRECTORY), code = errno;
    free(parent_path);
    errno = code;
    if (!make_writable(fd)) return fd;
    if (fd >= 0) close(fd);
    return fail("/%s", path);
}

/* Remove a path of the sandbox, of any kind, if it exists. */
static int remove_path(const char *path) {
    const char *name;
    int parent = open_parent(path, &name), result = 0;
    if (parent < 0) return is_missing() ? 0 : -1;
    if (unlinkat(parent, name, 0) && errno != ENOENT)
        result = errno == EISDIR || errno == EPERM ? remove_tree(name, parent) : fail("/%s", path);
    if (result && sandbox.in_chroot && (errno == EPERM || errno == EACCES))
        result = remove_as_guard(path) ? fail("/%s", path) : 0;
    close(parent);
    return result;
}

/* Remove the overlay's attributes, which mean nothing here, or all others. */
static void remove_attributes(int fd, bool overlay_only) {
    char names[XATTR_LIST_MAX];
    ssize_t length = flistxattr(fd, names, sizeof names);
    for (char *name = names; length > 0 && name < names + length; name += strlen(name) + 1)
        if (!strncmp(name, "user.overlay.", 13) == overlay_only && fremovexattr(fd, name))
            errno = 0;
}

static int copy_link(int from, int parent, const char *name) {
    char text[PATH_MAX];
    ssize_t length = readlinkat(from, "", text, sizeof text - 1);
    if (length < 0) return -1;
    text[length] = 0;
    return symlinkat(text, parent, name);
}

static int create_file(int from, int parent, const char *name) {
    int to = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) return -1;
    int result = from < 0 ? 0 : copy_content(from, to);
    remove_attributes(to, true);
    close(to);
    return result;
}

/* Create an entry with a mode, a time and the content of `from` (-1: empty). A directory gets
   its mode and time in `finish_directory`, once it is filled. */
static int create_entry(const char *path, int from, mode_t mode, int64_t mtime_ns) {
    const struct timespec times[] = {to_timespec(mtime_ns), to_timespec(mtime_ns)};
    const char *name;
    int parent = open_parent(path, &name), result;
    if (parent < 0) return -1;
    if (S_ISDIR(mode)) result = mkdirat(parent, name, 0700);
    else if (S_ISREG(mode)) result = create_file(from, parent, name);
    else if (S_ISLNK(mode)) result = copy_link(from, parent, name);
    else if (S_ISFIFO(mode)) result = mkfifoat(parent, name, 0600);
    else result = (errno = EOPNOTSUPP, -1);
    if (!result && !S_ISDIR(mode) && !S_ISLNK(mode))
        result = set_mode(parent, name, mode & 07777);
    if (!result && !S_ISDIR(mode)) result = utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
    if (result) fail("/%s", path);
    close(parent);
    return result;
}

/* Set only what differs, because a container's root directory need not belong to the user. */
static int set_metadata(int fd, mode_t mode, int64_t mtime_ns) {
    const struct timespec times[] = {to_timespec(mtime_ns), to_timespec(mtime_ns)};
    struct file_stat now;
    if (stat_entry(fd, "", &now)) return -1;
    if ((now.entry.mode & 07777) != (mode & 07777) && fchmod(fd, mode & 07777)) return -1;
    return now.entry.mtime_ns != mtime_ns ? futimens(fd, times) : 0;
}

/* Set attributes, mode and time of a directory after entries were created or removed in it.
   `from` has the attributes. */
static int finish_directory(const char *path, int from, mode_t mode, int64_t mtime_ns) {
    int fd = open_granted(sandbox.root, path, DIRECTORY);
    if (fd < 0) return fail("/%s", path);
    remove_attributes(fd, false);
    int result = from < 0 ? 0 : copy_user_attributes(from, fd);
    remove_attributes(fd, true);
    if (!result && set_metadata(fd, mode, mtime_ns) && errno != EPERM) result = fail("/%s", path);
    close(fd);
    return result;
}

/* ------------------------------------------------------------------- roll back */
static bool remains_directory(const struct difference *d) {  /* now and at the start */
    return d->kind == CHANGED && !d->replaced && !file_index.entries[d->entry].of_root;
}

static int recreate(const struct difference *d) {
    const struct entry *old = &file_index.entries[d->entry];
    if (old->of_root) return show_again_as_guard(d->path) ? fail("/%s", d->path) : 0;
    int flags = S_ISREG(old->mode) ? O_RDONLY : O_PATH, from = open_in_image(d->path, flags);
    if (from < 0 && !S_ISDIR(old->mode) && (old->size || errno != ENOENT))
        return fail("/%s of the image", d->path);
    int result = create_entry(d->path, from, old->mode, old->mtime_ns);
    if (from >= 0) close(from);
    return result;
}

static int restore_directory(const char *path, uint32_t number) {
    const struct entry *old = &file_index.entries[number];
    int from = open_in_image(path, DIRECTORY);
    int result = finish_directory(path, from, old->mode, old->mtime_ns);
    if (from >= 0) close(from);
    return result;
}

/* Record the fingerprint of a recreated entry, and return its shape. */
static int update_fingerprint(const char *path, uint32_t number, uint64_t *shape) {
    struct file_stat now;
    const char *name;
    int parent = *path ? open_parent(path, &name) : fcntl(sandbox.root, F_DUPFD_CLOEXEC, 0);
    if (parent < 0) return -1;
    int result = stat_entry(parent, *path ? name : "", &now);
    close(parent);
    if (result || now.entry.mode != file_index.entries[number].mode)
        return errno = result ? errno : EIO, fail("/%s", path);
    if (now.ctime_ns > newest_change) newest_change = now.ctime_ns;
    file_index.entries[number].fingerprint = now.entry.fingerprint;
    *shape = now.entry.shape;
    return 0;
}

/* Finish a restored entry. A directory that was just made has the shape that it had at the start,
   unless it was merged. */
static int restore_entry(struct difference *d) {
    bool is_directory = S_ISDIR(file_index.entries[d->entry].mode);
    uint64_t now;
    if ((is_directory && restore_directory(d->path, d->entry))
        || update_fingerprint(d->path, d->entry, &now))
        return -1;
    uint64_t *then = &file_index.entries[d->entry].shape;
    if (is_directory && !*then && !remains_directory(d) && !is_merged(d->path)) *then = now;
    d->other_shape = *then != now;
    return 0;
}

/* Restore the directory that holds a recreated or removed entry, if it existed at the start. */
static int restore_parent(const struct difference *d, uint32_t *last) {
    const char *slash = strrchr(d->path, '/');
    uint64_t shape;
    if (d->parent == NO_ENTRY || d->parent == *last) return 0;
    *last = d->parent;
    char *parent_path = strndup(d->path, slash ? (size_t)(slash - d->path) : 0);
    int result = !parent_path || restore_directory(parent_path, d->parent)
        || update_fingerprint(parent_path, d->parent, &shape) ? -1 : 0;
    free(parent_path);
    return result;
}

static int restore_all(struct differences *differences) {
    uint32_t last = NO_ENTRY;
    int result = 0;
    for (size_t i = 0; !result && i < differences->count; i++) {
        const struct difference *d = &differences->items[i];
        if (d->kind != DELETED && !d->under_replaced && !remains_directory(d))
            result = remove_path(d->path);
    }
    for (size_t i = 0; !result && i < differences->count; i++) {
        const struct difference *d = &differences->items[i];
        if (d->kind != NEW && !remains_directory(d)) result = recreate(d);
    }
    for (size_t i = differences->count; !result && i-- > 0;) {
        struct difference *d = &differences->items[i];
        if (d->parent != NO_ENTRY) file_index.entries[d->parent].always_visit = true;
        if (d->entry != NO_ENTRY) result = restore_entry(d);
    }
    for (size_t i = differences->count; !result && i-- > 0;)
        result = restore_parent(&differences->items[i], &last);
    return result;
}

/* Return whether the content of a directory can be made again soon, and looks the same then. */
static bool can_remake(int fd, long *files, long long *bytes) {
    struct names names;
    struct file_stat now;
    bool can = !list_names(fd, &names);
    for (size_t i = 0; can && i < names.count; i++) {
        can = !stat_entry(fd, names.name[i], &now) && !now.other_mount && !now.shared
            && ++*files <= MAX_REMADE_FILES;
        if (can && S_ISDIR(now.entry.mode)) {
            int inner = openat(fd, names.name[i], DIRECTORY | O_NOFOLLOW);
            can = inner >= 0 && can_remake(inner, files, bytes);
            if (inner >= 0) close(inner);
        } else if (can) {
            can = now.links == 1 && (*bytes += now.size) <= MAX_REMADE_BYTES;
        }
    }
    free_names(&names);
    return can;
}

static bool can_remake_path(const char *path) {
    long files = 0;
    long long bytes = 0;
    int fd = *path && !is_merged(path) ? open_granted(sandbox.root, path, DIRECTORY) : -1;
    bool can = fd >= 0 && can_remake(fd, &files, &bytes);
    if (fd >= 0) close(fd);
    return can;
}

/* Return whether a path is in a directory. */
static bool is_inside(const char *path, const char *directory) {
    size_t length = strlen(directory);
    return !strncmp(path, directory, length) && path[length] == '/';
}

/* Remove the directories that have another shape, to be made again. */
static int remove_other_shapes(const struct differences *differences, bool remakes, bool *again) {
    const char *removed = NULL;
    int result = 0;
    for (size_t i = 0; !result && !keeps_traces && i < differences->count; i++) {
        const struct difference *d = &differences->items[i];
        if (!d->other_shape || (removed && is_inside(d->path, removed))) continue;
        if (remakes && can_remake_path(d->path)) {
            result = remove_path(removed = d->path);
            *again = true;
        } else {
            keeps_traces = true;
            snprintf(traced, sizeof traced, "%s", d->path);
        }
    }
    return result;
}

static int roll_back_once(bool remakes, bool *again) {
    struct differences differences;
    int result = scan(&differences, false);
    discard_modes();  /* files with a changed mode are also differences */
    if (!result) result = restore_all(&differences);
    if (!result) result = remove_other_shapes(&differences, remakes, again);
    restore_modes();
    int code = errno;
    free_differences(&differences);
    errno = code;
    return result;
}

/* Restore all differences from the start. `recycles`: also what `ls -ld` and `du` print of a
   directory, its size, blocks and links. They are not restored with its entries: a disk does not
   shrink a directory, and an overlay merges a changed one with the original. A small one is made
   again. Fails with EBUSY if another one would show a change. */
int roll_back(bool recycles) {
    bool again = false;
    if (sandbox.in_chroot) remove_script();
    int result = roll_back_once(recycles, &again);
    if (!result && again && !keeps_traces) result = roll_back_once(false, &again);
    if (result) return -1;
    wait_clock_tick(newest_change);
    if (recycles && keeps_traces)
        return errno = EBUSY, fail("the directory /%s shows that its entries were changed", traced);
    return 0;
}

/* --------------------------------------------------- copy from another sandbox */
/* Return whether a directory may stay unchanged and only receive entries. */
static bool can_merge(int source, const char *path) {
    struct stat here;
    if (fstatat(sandbox.root, path, &here, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(here.st_mode))
        return false;
    /* nothing can be made in a directory of root; an empty one can be replaced */
    if (sandbox.in_chroot && !here.st_uid && !unlinkat(sandbox.root, path, AT_REMOVEDIR))
        return false;
    int from = open_granted(source, path, DIRECTORY);
    bool hides = from >= 0 && is_opaque(from);
    if (from >= 0) close(from);
    return !hides;
}

/* The source may be a layer, in which a character device marks a deleted path. */
static int copy_path(int source, const char *path, bool *directory) {
    struct stat info;
    int found = open_granted(source, path, O_PATH | O_NOFOLLOW), from = -1;
    *directory = false;
    if (found < 0) return is_missing() ? remove_path(path) : fail("/%s", path);
    int result = fstat(found, &info) ? fail("/%s", path) : 0;
    mode_t mode = result ? 0 : info.st_mode;
    if (!S_ISLNK(mode)) mode = (mode & S_IFMT) | original_mode(source, path, mode);
    *directory = S_ISDIR(mode);
    if (!result && !(S_ISDIR(mode) && can_merge(source, path))) {
        if (S_ISREG(mode) && (from = open_granted(source, path, O_RDONLY)) < 0)
            result = fail("/%s", path);
        if (!result) result = remove_path(path);
        int64_t mtime_ns = info.st_mtim.tv_sec * NANOSECONDS + info.st_mtim.tv_nsec;
        if (!result && !S_ISSOCK(mode) && !S_ISCHR(mode))
            result = create_entry(path, S_ISREG(mode) ? from : found, mode, mtime_ns);
    }
    if (from >= 0) close(from);
    close(found);
    return result;
}

static int copy_directory_metadata(int source, const char *path) {
    struct stat info;
    int from = open_granted(source, path, DIRECTORY);
    if (from < 0 || fstat(from, &info)) return fail("/%s", path);
    int result = finish_directory(path, from, original_mode(source, path, info.st_mode),
                                  info.st_mtim.tv_sec * NANOSECONDS + info.st_mtim.tv_nsec);
    close(from);
    return result;
}

/* Copy the metadata of the parent directory, once for consecutive paths with the same parent. */
static int copy_parent_metadata(int source, const char **differences, size_t i) {
    const char *slash = strrchr(differences[i], '/'), *next = differences[i + 1];
    size_t length = slash ? (size_t)(slash - differences[i]) : 0;
    if (!*differences[i]) return 0;
    if (next && !strncmp(next, differences[i], length + 1) && strrchr(next, '/') == next + length
        && slash)
        return 0;
    char *parent_path = strndup(differences[i], length);
    int result = parent_path ? copy_directory_metadata(source, parent_path) : -1;
    if (result && is_missing()) result = 0;  /* the parent is also deleted in the source */
    free(parent_path);
    return result;
}

/* Copy some paths from below another root. Parents come before their entries. */
int copy_paths(int source, const struct json *paths) {
    size_t count = paths ? paths->length : 0, i = 0;
    const char **differences = calloc(count + 1, sizeof *differences);
    bool *directory = calloc(count + 1, sizeof *directory);
    int result = differences && directory ? 0 : -1;
    for (const struct json *v = paths ? paths->first : NULL; v && !result; v = v->next, i++) {
        differences[i] = v->text && *v->text == '/' ? v->text + 1 : "";
        directory[i] = !*differences[i];
        if (*differences[i]) result = copy_path(source, differences[i], &directory[i]);
    }
    for (i = count; !result && i-- > 0;)
        if (directory[i]) result = copy_directory_metadata(source, differences[i]);
    for (i = count; !result && i-- > 0;) result = copy_parent_metadata(source, differences, i);
    restore_modes();
    int code = errno;
    free(differences);
    free(directory);
    errno = code;
    return result;
}
