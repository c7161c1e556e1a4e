/* Copies an overlay's upper directory, including whiteouts and opaque marks.
   sandbox/overlay_format.py does the same outside of the supervisor. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MAX_DEPTH 100
#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define CHUNK ((size_t)1 << 30)
#define SMALL (1 << 14)
#ifndef FICLONE
#define FICLONE 0x40049409
#endif

/* While layers are merged to a tree of files: its owner. Whiteouts then only delete. A file that the
   directory `programs` (-1: none) has as well becomes a hard link of that one. */
static struct { bool on; uid_t owner; int programs; } merging = {.programs = -1};

void begin_merge(uid_t owner, int programs) {
    merging.on = true;
    merging.owner = owner;
    merging.programs = programs;
}

/* Return whether a directory of an upper layer hides everything below it. */
bool is_opaque(int fd) {
    char value[4];
    return fgetxattr(fd, "user.overlay.opaque", value, sizeof value) == 1 && *value == 'y';
}

/* Copy the extended attributes in the namespace `user.`. */
int copy_user_attributes(int source, int target) {
    char *names = malloc(XATTR_LIST_MAX), *value = malloc(XATTR_SIZE_MAX);
    int result = 0;
    ssize_t length = names && value ? flistxattr(source, names, XATTR_LIST_MAX) : -1;
    if (length < 0) result = fail("flistxattr");
    for (char *name = names; !result && name < names + length; name += strlen(name) + 1) {
        if (strncmp(name, "user.", 5)) continue;
        if (merging.on && !strncmp(name, "user.overlay.", 13)) continue;
        ssize_t size = fgetxattr(source, name, value, XATTR_SIZE_MAX);
        if (size < 0 || fsetxattr(target, name, value, (size_t)size, 0)) result = fail("%s", name);
    }
    free(names);
    free(value);
    return result;
}

static int copy_small(int source, int target) {
    char content[SMALL];
    ssize_t got = read(source, content, sizeof content);
    return got < 0 || write(target, content, (size_t)got) != got ? fail("copy") : 0;
}

/* Copy the content of a file and keep its holes. */
static int copy_data(int source, int target) {
    static bool clones = true;  /* until the file system refuses */
    struct stat info;
    if (clones && !ioctl(target, FICLONE, source)) return 0;
    clones = false;
    if (fstat(source, &info)) return fail("copy");
    bool has_holes = info.st_blocks * 512 < info.st_size;
    if (info.st_size <= SMALL && !has_holes) return copy_small(source, target);
    if (ftruncate(target, info.st_size)) return fail("copy");
    for (off_t at = 0; at < info.st_size;) {
        off_t start = lseek(source, at, SEEK_DATA);
        if (start < 0) return 0;  /* only a hole is left */
        off_t end = at = lseek(source, start, SEEK_HOLE);
        if (end < 0 || lseek(target, start, SEEK_SET) < 0) return fail("copy");
        while (start < end) {
            size_t limit = (size_t)(end - start) < CHUNK ? (size_t)(end - start) : CHUNK;
            ssize_t sent = sendfile(target, source, &start, limit);
            if (sent < 0) return fail("copy");
            if (sent == 0) break;
        }
    }
    return 0;
}

int copy_content(int source, int target) {
    return copy_data(source, target) || copy_user_attributes(source, target) ? -1 : 0;
}

static int copy_file(const char *name, int source, int target) {
    int inner = openat(source, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) return fail("%s", name);
    int outer = openat(target, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int result = outer < 0 ? fail("%s", name) : 0;
    if (!result) result = copy_content(inner, outer);
    if (outer >= 0) close(outer);
    close(inner);
    return result;
}

static int copy_link(const char *name, int source, int target) {
    char text[PATH_MAX];
    ssize_t length = readlinkat(source, name, text, sizeof text - 1);
    if (length < 0) return fail("%s", name);
    text[length] = 0;
    return symlinkat(text, target, name) ? fail("%s", name) : 0;
}

static int copy_directory(const char *name, int source, int target, int depth) {
    if (mkdirat(target, name, 0700) && errno != EEXIST) return fail("%s", name);
    int inner = openat(source, name, SUBDIRECTORY);
    int outer = inner < 0 ? -1 : openat(target, name, SUBDIRECTORY);
    int result = outer < 0 || fchmod(outer, 0700) ? fail("%s", name) : 0;
    int programs = merging.programs;
    if (programs >= 0) merging.programs = openat(programs, name, SUBDIRECTORY);
    if (!result && depth < MAX_DEPTH) result = copy_tree(inner, outer, depth + 1);
    if (merging.programs >= 0) close(merging.programs);
    merging.programs = programs;
    if (inner >= 0) close(inner);
    if (outer >= 0) close(outer);
    return result;
}

/* Remove a directory and everything in it. Nothing else may change it during the call. */
int remove_tree(const char *name, int parent) {
    struct names entries = {0};
    struct stat info;
    int result = 0, fd = openat(parent, name, SUBDIRECTORY);
    if (fd < 0 && errno == EACCES && !set_mode(parent, name, 0700))
        fd = openat(parent, name, SUBDIRECTORY);
    if (fd < 0) return fail("%s", name);
    if (fchmod(fd, 0700) || list_names(fd, &entries)) result = fail("%s", name);
    for (size_t i = 0; !result && i < entries.count; i++) {
        const char *entry = entries.name[i];
        if (fstatat(fd, entry, &info, AT_SYMLINK_NOFOLLOW)) result = fail("%s", entry);
        else if (S_ISDIR(info.st_mode)) result = remove_tree(entry, fd);
        else if (unlinkat(fd, entry, 0)) result = fail("%s", entry);
    }
    free_names(&entries);
    close(fd);
    if (!result && unlinkat(parent, name, AT_REMOVEDIR)) result = fail("%s", name);
    return result;
}

/* Remove what an entry of a higher layer hides. */
static int remove_hidden(const char *name, const struct stat *info, int source, int target) {
    struct stat old;
    if (fstatat(target, name, &old, AT_SYMLINK_NOFOLLOW)) return fail("%s", name);
    if (!S_ISDIR(old.st_mode)) return unlinkat(target, name, 0) ? fail("%s", name) : 0;
    if (S_ISDIR(info->st_mode)) {
        int inner = openat(source, name, SUBDIRECTORY);
        if (inner < 0) return fail("%s", name);
        bool merged = !is_opaque(inner);
        close(inner);
        if (merged) return 0;
    }
    return remove_tree(name, target);
}

/* Link the copy of a file that sandboxes share, unless the file was changed since it was made. */
static bool link_program(const char *name, const struct stat *info, int target) {
    struct stat copy;
    return merging.programs >= 0 && S_ISREG(info->st_mode)
        && !fstatat(merging.programs, name, &copy, AT_SYMLINK_NOFOLLOW)
        && copy.st_size == info->st_size && copy.st_mtim.tv_sec == info->st_mtim.tv_sec
        && copy.st_mtim.tv_nsec == info->st_mtim.tv_nsec
        && (copy.st_mode & 0777) == (info->st_mode & 0777)
        && !linkat(merging.programs, name, target, name, 0);
}

static int copy_entry(const char *name, const struct stat *info, int source, int target,
                      int depth) {
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    mode_t mode = info->st_mode;
    bool loses_owners = sandbox.has_users && json_bool(sandbox.spec, "without_owners");
    int result;
    if (merging.on && S_ISCHR(mode)) return 0;
    if (link_program(name, info, target)) return 0;
    if (S_ISDIR(mode)) result = copy_directory(name, source, target, depth);
    else if (S_ISREG(mode)) result = copy_file(name, source, target);
    else if (S_ISLNK(mode)) result = copy_link(name, source, target);
    else if (S_ISFIFO(mode) || S_ISCHR(mode))
        result = mknodat(target, name, mode, info->st_rdev) ? fail("%s", name) : 0;
    else return 0;  /* a socket: nothing could listen on the copy */
    if (result) return -1;
    if (merging.on && fchownat(target, name, merging.owner, merging.owner, AT_SYMLINK_NOFOLLOW))
        return fail("%s", name);
    if (sandbox.has_users && !loses_owners && (info->st_uid || info->st_gid)
        && fchownat(target, name, info->st_uid, info->st_gid, AT_SYMLINK_NOFOLLOW))
        return fail("%s", name);
    if (loses_owners && S_ISREG(mode)) mode &= ~(mode_t)(S_ISUID | S_ISGID);
    if (!S_ISLNK(mode) && fchmodat(target, name, mode & 07777, 0)) return fail("%s", name);
    return utimensat(target, name, times, AT_SYMLINK_NOFOLLOW) ? fail("%s", name) : 0;
}

int copy_tree(int source, int target, int depth) {
    struct names names = {0}, there = {0};
    int result = list_names(source, &names) || list_names(target, &there) ? -1 : 0;
    for (size_t i = 0; !result && i < names.count; i++) {
        const char *name = names.name[i];
        struct stat info;
        if (fstatat(source, name, &info, AT_SYMLINK_NOFOLLOW)) {
            if (errno != ENOENT) result = fail("%s", name);
            continue;
        }
        if (contains_name(&there, name)) result = remove_hidden(name, &info, source, target);
        if (!result) result = copy_entry(name, &info, source, target, depth);
    }
    free_names(&names);
    free_names(&there);
    return result ? -1 : copy_user_attributes(source, target);
}
