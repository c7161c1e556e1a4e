/* Puts a container's files back as they were, or gives it what another box has. Nothing may work in
   either meanwhile. What differs is made anew rather than overwritten, so that who still has it open
   has what is no longer there. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int64_t newest;          /* change that was made here */

static struct timespec at_time(int64_t nanoseconds) {
    return (struct timespec){nanoseconds / SECOND, nanoseconds % SECOND};
}

/* Whether a path could not be opened as something above it is gone, or something else. */
static bool is_gone(void) {
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
}

/* Have the owner write in a directory, which is settled later. */
static int writable(int fd) {
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) return -1;
    return (info.st_mode & 0700) == 0700 ? 0 : fchmod(fd, (info.st_mode | 0700) & 07777);
}

/* The directory of a path of the box, as a descriptor, and its last name. */
static int parent_of(const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    char *above = strndup(path, slash ? (size_t)(slash - path) : 0);
    if (!above) abort();
    int fd = open_unlocked(box.root, above, DIRECTORY), code = errno;
    free(above);
    errno = code;
    if (!writable(fd)) return fd;
    if (fd >= 0) close(fd);
    return failed("/%s", path);
}

/* Remove what a path of the box stands for, whatever that is, if it is there. */
static int removed(const char *path) {
    const char *name;
    int parent = parent_of(path, &name), result = 0;
    if (parent < 0) return is_gone() ? 0 : -1;
    if (unlinkat(parent, name, 0) && errno != ENOENT)
        result = errno == EISDIR || errno == EPERM ? remove_tree(name, parent) : failed("/%s", path);
    close(parent);
    return result;
}

/* Remove a layer's marks, which mean nothing here, or all other attributes. */
static void without_attributes(int fd, bool marks) {
    char names[XATTR_LIST_MAX];
    ssize_t length = flistxattr(fd, names, sizeof names);
    for (char *name = names; length > 0 && name < names + length; name += strlen(name) + 1)
        if (!strncmp(name, "user.overlay.", 13) == marks && fremovexattr(fd, name)) errno = 0;
}

static int link_like(int from, int parent, const char *name) {
    char text[PATH_MAX];
    ssize_t length = readlinkat(from, "", text, sizeof text - 1);
    if (length < 0) return -1;
    text[length] = 0;
    return symlinkat(text, parent, name);
}

static int file_like(int from, int parent, const char *name) {
    int to = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) return -1;
    int result = from < 0 ? 0 : copy_content(from, to);
    without_attributes(to, true);
    close(to);
    return result;
}

/* Make what is to be at a path, of this mode and time, with what `from` holds (-1: nothing). A
   directory's time and mode wait until it is filled. */
static int made(const char *path, int from, mode_t mode, int64_t modified) {
    const struct timespec times[] = {at_time(modified), at_time(modified)};
    const char *name;
    int parent = parent_of(path, &name), result;
    if (parent < 0) return -1;
    if (S_ISDIR(mode)) result = mkdirat(parent, name, 0700);
    else if (S_ISREG(mode)) result = file_like(from, parent, name);
    else if (S_ISLNK(mode)) result = link_like(from, parent, name);
    else if (S_ISFIFO(mode)) result = mkfifoat(parent, name, 0600);
    else result = (errno = EOPNOTSUPP, -1);
    if (!result && !S_ISDIR(mode) && !S_ISLNK(mode)) result = fchmodat(parent, name, mode & 07777, 0);
    if (!result && !S_ISDIR(mode)) result = utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
    if (result) failed("/%s", path);
    close(parent);
    return result;
}

/* Only what differs is set, and what is not its user's stays: a container's root need not be. */
static int dressed(int fd, mode_t mode, int64_t modified) {
    const struct timespec times[] = {at_time(modified), at_time(modified)};
    struct look now;
    if (look(fd, "", &now)) return -1;
    if ((now.found.mode & 07777) != (mode & 07777) && fchmod(fd, mode & 07777)) return -1;
    return now.found.modified != modified ? futimens(fd, times) : 0;
}

/* The last touch to a directory in which things were made or removed. `from` is one to be like. */
static int settled(const char *path, int from, mode_t mode, int64_t modified) {
    int fd = open_unlocked(box.root, path, DIRECTORY);
    if (fd < 0) return failed("/%s", path);
    without_attributes(fd, false);
    int result = from < 0 ? 0 : copy_marks(from, fd);
    without_attributes(fd, true);
    if (!result && dressed(fd, mode, modified) && errno != EPERM) result = failed("/%s", path);
    close(fd);
    return result;
}

/* ------------------------------------------------------------------ as it was */
static bool stays(const struct difference *d) {  /* a directory then and now */
    return d->how == CHANGED && !d->replaced;
}

static int remade(const struct difference *d) {
    const struct entry *was = &index_of_box.entries[d->entry];
    int flags = S_ISREG(was->mode) ? O_RDONLY : O_PATH, from = open_pristine(d->path, flags);
    if (from < 0 && !S_ISDIR(was->mode) && (was->size || errno != ENOENT))
        return failed("/%s of the image", d->path);
    int result = made(d->path, from, was->mode, was->modified);
    if (from >= 0) close(from);
    return result;
}

static int settled_as_before(const char *path, uint32_t number) {
    const struct entry *was = &index_of_box.entries[number];
    int from = open_pristine(path, DIRECTORY);
    int result = settled(path, from, was->mode, was->modified);
    if (from >= 0) close(from);
    return result;
}

/* Take the mark of what was remade. */
static int marked(const char *path, uint32_t number) {
    struct look now;
    const char *name;
    int parent = *path ? parent_of(path, &name) : fcntl(box.root, F_DUPFD_CLOEXEC, 0);
    if (parent < 0) return -1;
    int result = look(parent, *path ? name : "", &now);
    close(parent);
    if (result || now.found.mode != index_of_box.entries[number].mode)
        return errno = result ? errno : EIO, failed("/%s", path);
    if (now.changed > newest) newest = now.changed;
    index_of_box.entries[number].mark = now.found.mark;
    return 0;
}

/* The directory that holds what was remade or removed, if it was there before. */
static int parent_settled(const struct difference *d, uint32_t *last) {
    const char *slash = strrchr(d->path, '/');
    if (d->parent == NOWHERE || d->parent == *last) return 0;
    *last = d->parent;
    char *above = strndup(d->path, slash ? (size_t)(slash - d->path) : 0);
    int result = !above || settled_as_before(above, d->parent) || marked(above, d->parent) ? -1 : 0;
    free(above);
    return result;
}

static int restored(const struct differences *all) {
    uint32_t last = NOWHERE;
    int result = 0;
    for (size_t i = 0; !result && i < all->count; i++) {
        const struct difference *d = &all->all[i];
        if (d->how != GONE && !d->below && !stays(d)) result = removed(d->path);
    }
    for (size_t i = 0; !result && i < all->count; i++) {
        const struct difference *d = &all->all[i];
        if (d->how != NEW && !stays(d)) result = remade(d);
    }
    for (size_t i = all->count; !result && i-- > 0;) {
        const struct difference *d = &all->all[i];
        if (d->parent != NOWHERE) index_of_box.entries[d->parent].reopened = true;
        if (d->entry == NOWHERE) continue;
        if (S_ISDIR(index_of_box.entries[d->entry].mode)) result = settled_as_before(d->path, d->entry);
        if (!result) result = marked(d->path, d->entry);
    }
    for (size_t i = all->count; !result && i-- > 0;) result = parent_settled(&all->all[i], &last);
    return result;
}

/* Put back all that differs from the start. */
int put_back(void) {
    struct differences all;
    int result = scan(&all);
    forget_locks();  /* what was locked differs, and is put back, too */
    if (!result) result = restored(&all);
    lock_again();
    int code = errno;
    forget_differences(&all);
    if (!result) let_time_pass(newest);
    errno = code;
    return result;
}

/* ------------------------------------------------------------- as another box */
/* Whether what is at a path may stay: a directory for a directory, where that hides nothing. */
static bool merges(int source, const char *path) {
    struct stat here;
    if (fstatat(box.root, path, &here, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(here.st_mode)) return false;
    int from = open_unlocked(source, path, DIRECTORY);
    bool hides = from >= 0 && is_opaque(from);
    if (from >= 0) close(from);
    return !hides;
}

/* The other root may be a layer: a character device stands for what is gone then. */
static int copied(int source, const char *path, bool *directory) {
    struct stat info;
    int found = open_unlocked(source, path, O_PATH | O_NOFOLLOW), from = -1;
    *directory = false;
    if (found < 0) return is_gone() ? removed(path) : failed("/%s", path);
    int result = fstat(found, &info) ? failed("/%s", path) : 0;
    mode_t mode = result ? 0 : info.st_mode;
    if (!S_ISLNK(mode)) mode = (mode & S_IFMT) | locked_mode(source, path, mode);
    *directory = S_ISDIR(mode);
    if (!result && !(S_ISDIR(mode) && merges(source, path))) {
        if (S_ISREG(mode) && (from = open_unlocked(source, path, O_RDONLY)) < 0)
            result = failed("/%s", path);
        if (!result) result = removed(path);
        int64_t modified = info.st_mtim.tv_sec * SECOND + info.st_mtim.tv_nsec;
        if (!result && !S_ISSOCK(mode) && !S_ISCHR(mode))
            result = made(path, S_ISREG(mode) ? from : found, mode, modified);
    }
    if (from >= 0) close(from);
    close(found);
    return result;
}

static int settled_as_there(int source, const char *path) {
    struct stat info;
    int from = open_unlocked(source, path, DIRECTORY);
    if (from < 0 || fstat(from, &info)) return failed("/%s", path);
    int result = settled(path, from, locked_mode(source, path, info.st_mode),
                         info.st_mtim.tv_sec * SECOND + info.st_mtim.tv_nsec);
    close(from);
    return result;
}

/* The directory that holds the path, once where it holds the next one, too. */
static int parent_as_there(int source, const char **all, size_t i) {
    const char *slash = strrchr(all[i], '/'), *next = all[i + 1];
    size_t length = slash ? (size_t)(slash - all[i]) : 0;
    if (!*all[i]) return 0;
    if (next && !strncmp(next, all[i], length + 1) && strrchr(next, '/') == next + length && slash)
        return 0;
    char *above = strndup(all[i], length);
    int result = above ? settled_as_there(source, above) : -1;
    if (result && is_gone()) result = 0;  /* it is not there either */
    free(above);
    return result;
}

/* Have at some paths what is there below another root, parents before what they hold. */
int copy_paths(int source, const struct json *paths) {
    size_t count = paths ? paths->length : 0, i = 0;
    const char **all = calloc(count + 1, sizeof *all);
    bool *directory = calloc(count + 1, sizeof *directory);
    int result = all && directory ? 0 : -1;
    for (const struct json *v = paths ? paths->first : NULL; v && !result; v = v->next, i++) {
        all[i] = v->text && *v->text == '/' ? v->text + 1 : "";
        directory[i] = !*all[i];
        if (*all[i]) result = copied(source, all[i], &directory[i]);
    }
    for (i = count; !result && i-- > 0;)
        if (directory[i]) result = settled_as_there(source, all[i]);
    for (i = count; !result && i-- > 0;) result = parent_as_there(source, all, i);
    lock_again();
    int code = errno;
    free(all);
    free(directory);
    errno = code;
    return result;
}
