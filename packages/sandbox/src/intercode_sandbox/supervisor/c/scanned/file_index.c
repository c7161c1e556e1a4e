/* Records the files of a container before anything runs in it. A path that is not in the index is
   new; one with another fingerprint was changed, because only the kernel sets an inode's change
   time. Mounts other than the root are left out.

   On an overlay the index is filled on demand. A change copies the directory and its parents to
   the upper layer, which changes their times, so nothing below a directory with an old time has
   changed. A changed directory is indexed when it is first found: from itself for entries older
   than the container, and from the image's trees for the rest. On other file systems all files
   are indexed at the start. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#ifndef STATX_MNT_ID  /* musl leaves the member without a name */
#define STATX_MNT_ID 0x1000U
#define stx_mnt_id __pad1[0]
#endif
#define WANTED (STATX_BASIC_STATS | STATX_MNT_ID)
#define NANOSECONDS 1000000000LL

struct index file_index;
static uint64_t root_mount;
/* the clock at the start, and its distance from the time since boot */
static int64_t start_time, start_offset;
static bool is_pristine;  /* during the start, while no file has changed */

static int64_t nanoseconds(struct statx_timestamp time) {
    return time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static int64_t read_clock(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return now.tv_sec * NANOSECONDS + now.tv_nsec;
}

static int64_t clock_offset(void) {
    return read_clock(CLOCK_REALTIME_COARSE) - read_clock(CLOCK_BOOTTIME);
}

/* Files with a later change time were changed in the sandbox. Allows for a clock that was set
   back. */
static int64_t latest_original_time(void) {
    int64_t since = clock_offset() - start_offset;
    return start_time + (since < 0 ? since : 0);
}

static uint64_t mix_hash(uint64_t fingerprint, uint64_t value) {
    fingerprint = (fingerprint ^ value) * 0x9E3779B97F4A7C15ULL;
    return fingerprint ^ fingerprint >> 29;
}

/* Return a hash of the size, blocks and links of a directory. Where ext4 finds no free space in one
   piece, it keeps a map of a directory of several blocks in one more: two equal directories that are
   made one after the other may differ in that, so it does not count. */
static uint64_t directory_shape(const struct statx *all) {
    uint64_t blocks = all->stx_blocks, of_size = all->stx_size / 512, one = all->stx_blksize / 512;
    if (of_size > one && blocks == of_size + one) blocks = of_size;
    return mix_hash(mix_hash(mix_hash(1, all->stx_size), blocks), all->stx_nlink);
}

static int stat_with_flags(int fd, const char *name, int flags, struct file_stat *out) {
    struct statx all;
    memset(out, 0, sizeof *out);
    if (statx(fd, name, flags, WANTED, &all)) return -1;
    out->other_mount = all.stx_mnt_id != root_mount;
    out->ctime_ns = nanoseconds(all.stx_ctime);
    out->inode = all.stx_ino;
    out->links = all.stx_nlink;
    out->blocks = all.stx_blocks;
    out->size = (long long)all.stx_size;
    out->entry = (struct entry){
        .mtime_ns = nanoseconds(all.stx_mtime), .mode = all.stx_mode,
        .children = S_ISDIR(all.stx_mode) ? NOT_INDEXED : NO_ENTRY,
        .size = all.stx_size < UINT32_MAX ? (uint32_t)all.stx_size : UINT32_MAX,
    };
    if (S_ISDIR(all.stx_mode)) out->entry.shape = directory_shape(&all);
    /* commands cannot change a shared file, and its time changes whenever a sandbox links it; they
       cannot change a directory of root, but move it away and back */
    out->shared = sandbox.in_chroot && (S_ISREG(all.stx_mode) ? all.stx_uid != sandbox.user
                                        : S_ISDIR(all.stx_mode) && !all.stx_uid);
    out->entry.fingerprint = mix_hash(mix_hash(mix_hash(1, all.stx_ino), all.stx_mode),
                                      out->shared ? 0 : (uint64_t)out->ctime_ns);
    return 0;
}

/* Stat a name; "" is the directory itself. */
int stat_entry(int fd, const char *name, struct file_stat *out) {
    return stat_with_flags(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, out);
}

/* Stat the target of a link of /proc. */
int stat_target(int fd, const char *name, struct file_stat *out) {
    return stat_with_flags(fd, name, AT_NO_AUTOMOUNT, out);
}

static void append_entry(struct index *x, const struct entry *entry, const char *name) {
    x->entries = ensure_capacity(x->entries, x->count, &x->capacity, sizeof *x->entries);
    x->entries[x->count] = *entry;
    if (!(x->entries[x->count++].name = strdup(name))) abort();
}

/* Look up the state of a name at the start. Return 1, or 0 if it did not exist on this mount. */
static int original_entry(int fd, const char *directory, const char *name, struct entry *out) {
    struct file_stat now;
    struct stat old;
    if (fd >= 0 && !stat_entry(fd, name, &now)) {
        *out = now.entry;
        if (now.other_mount) return 0;
        if (is_pristine || now.ctime_ns <= latest_original_time()) return 1;
    }
    if (is_pristine || stat_in_image(directory, name, &old)) return 0;
    *out = (struct entry){
        .mtime_ns = old.st_mtim.tv_sec * NANOSECONDS + old.st_mtim.tv_nsec,
            .mode = (uint16_t)old.st_mode,
        .children = S_ISDIR(old.st_mode) ? NOT_INDEXED : NO_ENTRY,
        .size = old.st_size < UINT32_MAX ? (uint32_t)old.st_size : UINT32_MAX,
    };
    return 1;
}

/* Index a directory that is not indexed yet. `fd` is the current directory, or -1 if it is deleted.
   */
int index_directory(uint32_t number, int fd, const char *path) {
    struct index *x = &file_index;
    struct names now = {0}, then = {0};
    struct child_range range = {.first = (uint32_t)x->count};
    struct entry entry;
    if (x->entries[number].children != NOT_INDEXED) return 0;
    int result = fd >= 0 ? list_names(fd, &now) : 0;
    if (!result && !is_pristine) result = list_in_image(path, &then);
    for (size_t i = 0, n = 0; !result && (i < now.count || n < then.count);) {
        int order = i == now.count ? 1 : n == then.count ? -1 : strcmp(now.name[i], then.name[n]);
        const char *name = order <= 0 ? now.name[i] : then.name[n];
        if (original_entry(order <= 0 ? fd : -1, path, name, &entry)) append_entry(x, &entry, name);
        i += order <= 0;
        n += order >= 0;
    }
    free_names(&now);
    free_names(&then);
    range.count = (uint32_t)x->count - range.first;
    x->ranges = ensure_capacity(x->ranges, x->range_count, &x->range_capacity, sizeof *x->ranges);
    x->entries[number].children = (uint32_t)x->range_count;
    x->ranges[x->range_count++] = range;
    return result;
}

/* Return whether commands cannot change a directory. In a container they own all files. */
static bool is_of_root(int fd) {
    struct stat info;
    return sandbox.in_chroot && !fstat(fd, &info) && !info.st_uid;
}

/* Return whether recording the many entries of such a directory would take long. An empty one is
   recorded, so that another in its place is compared with it. */
static bool is_immutable(int fd) {
    struct names names;
    if (!is_of_root(fd)) return false;
    bool has_entries = list_names(fd, &names) || names.count;
    free_names(&names);
    return has_entries;
}

static int index_tree(uint32_t number, int fd) {
    if (index_directory(number, fd, "")) return -1;
    struct child_range range = file_index.ranges[file_index.entries[number].children];
    int result = 0;
    for (uint32_t i = range.first; !result && i < range.first + range.count; i++) {
        if (!S_ISDIR(file_index.entries[i].mode)) continue;
        int inner = openat(fd, file_index.entries[i].name, SUBDIRECTORY);
        if (inner < 0) return fail("%s", file_index.entries[i].name);
        file_index.entries[i].of_root = is_of_root(inner);
        if (is_immutable(inner)) file_index.entries[i].immutable = true;
        else result = index_tree(i, inner);
        close(inner);
    }
    return result;
}

static uint32_t find_child(uint32_t number, const char *name) {
    struct child_range range = file_index.ranges[file_index.entries[number].children];
    for (uint32_t i = range.first; i < range.first + range.count; i++)
        if (!strcmp(file_index.entries[i].name, name)) return i;
    return NO_ENTRY;
}

/* Index the directories along a path and always scan them: engines put files there, so they are in
   the upper layer from the start. */
static int index_path(int root, const char *path) {
    char prefix[PATH_MAX] = "", name[NAME_MAX + 1];
    uint32_t number = 0;
    for (;;) {
        int fd = open_exact(root, prefix, DIRECTORY | O_NOFOLLOW, 0);
        int result = fd < 0 ? fail("/%s", prefix) : index_directory(number, fd, prefix);
        if (fd >= 0) close(fd);
        if (result) return -1;
        file_index.entries[number].always_visit = true;
        size_t length = strcspn(path, "/"), used = strlen(prefix);
        if (!length || length >= sizeof name || used + length + 2 > sizeof prefix) return 0;
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        number = find_child(number, name);
        if (number == NO_ENTRY || !S_ISDIR(file_index.entries[number].mode)) return 0;
        snprintf(prefix + used, sizeof prefix - used, "%s%s", used ? "/" : "", name);
        path += length + (path[length] == '/');
    }
}

/* Index the directories in which engines put files, and the mount points. */
static int index_engine_paths(int root) {
    char *line = NULL, point[PATH_MAX];
    size_t capacity = 0;
    int result = index_path(root, "etc") || index_path(root, "run") ? -1 : 0;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts) return fail("/proc/self/mountinfo");
    while (!result && getline(&line, &capacity, mounts) > 0)
        if (sscanf(line, "%*s %*s %*s %*s /%4095s", point) == 1) result = index_path(root, point);
    free(line);
    fclose(mounts);
    return result;
}

/* Return whether the root is an overlay without index, on which each name of a file has its own
   entry. */
static bool is_plain_overlay(int root) {
    struct statfs info;
    char *line = NULL;
    size_t capacity = 0;
    bool plain = !fstatfs(root, &info) && info.f_type == OVERLAYFS_SUPER_MAGIC;
    FILE *mounts = plain ? fopen("/proc/self/mounts", "re") : NULL;
    while (mounts && getline(&line, &capacity, mounts) > 0)
        if (strstr(line, " / overlay ") && strstr(line, "index=on")) plain = false;
    free(line);
    if (mounts) fclose(mounts);
    return plain && mounts;
}

int build_index(int root, bool trees) {
    struct file_stat seen;
    struct statx all;
    if (statx(root, "", AT_EMPTY_PATH, STATX_MNT_ID, &all)) return fail("statx");
    if (!(all.stx_mask & STATX_MNT_ID)) return errno = ENOSYS, fail("statx of mounts");
    root_mount = all.stx_mnt_id;
    start_time = read_clock(CLOCK_REALTIME_COARSE);
    start_offset = clock_offset();
    if (stat_entry(root, "", &seen)) return fail("/");
    append_entry(&file_index, &seen.entry, "");
    file_index.covers_subtree = trees && is_plain_overlay(root);
    is_pristine = true;
    int result = file_index.covers_subtree ? index_engine_paths(root) : index_tree(0, root);
    is_pristine = false;
    wait_clock_tick(start_time > seen.ctime_ns ? start_time : seen.ctime_ns);
    return result;
}

/* Wait until the clock differs from `then`, so that later changes get a different time. */
void wait_clock_tick(int64_t then) {
    const struct timespec moment = {0, 1000000};
    while (read_clock(CLOCK_REALTIME_COARSE) <= then && !nanosleep(&moment, NULL)) {}
}
