/* What a container's files were before anything ran in it. What is in no index is new, and what has
   another mark than there was touched: the time of an inode's last change is the kernel's to set.
   Other mounts than the root are left out.

   On an overlay the index grows with what is changed. Nothing can be changed below a directory that
   was not copied to the upper layer first, with those above it, and then their times tell. So a
   directory is taken into the index when it is first found changed: by itself, in what is older than
   the container, and by the image's trees in the rest. Elsewhere all is looked at, at the start. */

#define _GNU_SOURCE
#include "container/container.h"

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

#define INNER (DIRECTORY | O_NOFOLLOW)
#define WANTED (STATX_BASIC_STATS | STATX_MNT_ID)
#define SECOND 1000000000LL

struct index index_of_box;
static uint64_t root_mount;
static int64_t begun, ahead;    /* the clock then, and how far it was ahead of the machine's age */
static bool complete;           /* while all that is there is as it was */

static int64_t nanoseconds(struct statx_timestamp time) {
    return time.tv_sec * SECOND + time.tv_nsec;
}

static int64_t clock_of(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static int64_t lead(void) {
    return clock_of(CLOCK_REALTIME_COARSE) - clock_of(CLOCK_BOOTTIME);
}

/* What changed later is the box's work; a clock that was set back meanwhile is allowed for. */
static int64_t horizon(void) {
    int64_t since = lead() - ahead;
    return begun + (since < 0 ? since : 0);
}

static uint64_t mixed(uint64_t mark, uint64_t value) {
    mark = (mark ^ value) * 0x9E3779B97F4A7C15ULL;
    return mark ^ mark >> 29;
}

static int looked(int fd, const char *name, int flags, struct look *out) {
    struct statx all;
    memset(out, 0, sizeof *out);
    if (statx(fd, name, flags, WANTED, &all)) return -1;
    out->foreign = all.stx_mnt_id != root_mount;
    out->changed = nanoseconds(all.stx_ctime);
    out->inode = all.stx_ino;
    out->links = all.stx_nlink;
    out->blocks = all.stx_blocks;
    out->size = (long long)all.stx_size;
    out->found = (struct entry){
        .modified = nanoseconds(all.stx_mtime), .mode = all.stx_mode,
        .inner = S_ISDIR(all.stx_mode) ? NOT_YET : NOWHERE,
        .size = all.stx_size < UINT32_MAX ? (uint32_t)all.stx_size : UINT32_MAX,
    };
    out->found.mark = mixed(mixed(mixed(1, all.stx_ino), all.stx_mode), (uint64_t)out->changed);
    return 0;
}

/* What a name stands for now; "" for the directory itself. */
int look(int fd, const char *name, struct look *out) {
    return looked(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, out);
}

/* What is behind a link of /proc. */
int look_behind(int fd, const char *name, struct look *out) {
    return looked(fd, name, AT_NO_AUTOMOUNT, out);
}

static void *grown(void *list, size_t count, size_t *room, size_t size) {
    if (count < *room) return list;
    *room = count + count / 2 + 64;
    if (!(list = realloc(list, *room * size))) abort();
    return list;
}

static void append(struct index *x, const struct entry *entry, const char *name) {
    x->entries = grown(x->entries, x->count, &x->room, sizeof *x->entries);
    x->entries[x->count] = *entry;
    if (!(x->entries[x->count++].name = strdup(name))) abort();
}

/* What a name stood for at the start: 1, or 0 where nothing of this mount did. */
static int before(int fd, const char *directory, const char *name, struct entry *out) {
    struct look now;
    struct stat old;
    if (fd >= 0 && !look(fd, name, &now)) {
        *out = now.found;
        if (now.foreign) return 0;
        if (complete || now.changed <= horizon()) return 1;
    }
    if (complete || stat_pristine(directory, name, &old)) return 0;
    *out = (struct entry){
        .modified = old.st_mtim.tv_sec * SECOND + old.st_mtim.tv_nsec, .mode = (uint16_t)old.st_mode,
        .inner = S_ISDIR(old.st_mode) ? NOT_YET : NOWHERE,
        .size = old.st_size < UINT32_MAX ? (uint32_t)old.st_size : UINT32_MAX,
    };
    return 1;
}

/* Take a directory in, if that was not done. `fd` is what it is now, or -1 where it is gone. */
int take_in(uint32_t number, int fd, const char *path) {
    struct index *x = &index_of_box;
    struct names now = {0}, then = {0};
    struct siblings group = {.first = (uint32_t)x->count};
    struct entry entry;
    if (x->entries[number].inner != NOT_YET) return 0;
    int result = fd >= 0 ? names_in(fd, &now) : 0;
    if (!result && !complete) result = names_pristine(path, &then);
    for (size_t i = 0, n = 0; !result && (i < now.count || n < then.count);) {
        int order = i == now.count ? 1 : n == then.count ? -1 : strcmp(now.name[i], then.name[n]);
        const char *name = order <= 0 ? now.name[i] : then.name[n];
        if (before(order <= 0 ? fd : -1, path, name, &entry)) append(x, &entry, name);
        i += order <= 0;
        n += order >= 0;
    }
    free_names(&now);
    free_names(&then);
    group.count = (uint32_t)x->count - group.first;
    x->groups = grown(x->groups, x->groups_count, &x->groups_room, sizeof *x->groups);
    x->entries[number].inner = (uint32_t)x->groups_count;
    x->groups[x->groups_count++] = group;
    return result;
}

static int take_in_all(uint32_t number, int fd) {
    if (take_in(number, fd, "")) return -1;
    struct siblings group = index_of_box.groups[index_of_box.entries[number].inner];
    int result = 0;
    for (uint32_t i = group.first; !result && i < group.first + group.count; i++) {
        if (!S_ISDIR(index_of_box.entries[i].mode)) continue;
        int inner = openat(fd, index_of_box.entries[i].name, INNER);
        if (inner < 0) return failed("%s", index_of_box.entries[i].name);
        result = take_in_all(i, inner);
        close(inner);
    }
    return result;
}

static uint32_t child_of(uint32_t number, const char *name) {
    struct siblings group = index_of_box.groups[index_of_box.entries[number].inner];
    for (uint32_t i = group.first; i < group.first + group.count; i++)
        if (!strcmp(index_of_box.entries[i].name, name)) return i;
    return NOWHERE;
}

/* Take in the directories along a path, and have them looked into always: an engine has put things
   there, which are in the upper layer from the start. */
static int take_in_along(int root, const char *path) {
    char so_far[PATH_MAX] = "", name[NAME_MAX + 1];
    uint32_t number = 0;
    for (;;) {
        int fd = open_exact(root, so_far, DIRECTORY | O_NOFOLLOW, 0);
        int result = fd < 0 ? failed("/%s", so_far) : take_in(number, fd, so_far);
        if (fd >= 0) close(fd);
        if (result) return -1;
        index_of_box.entries[number].reopened = true;
        size_t length = strcspn(path, "/"), used = strlen(so_far);
        if (!length || length >= sizeof name || used + length + 2 > sizeof so_far) return 0;
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        number = child_of(number, name);
        if (number == NOWHERE || !S_ISDIR(index_of_box.entries[number].mode)) return 0;
        snprintf(so_far + used, sizeof so_far - used, "%s%s", used ? "/" : "", name);
        path += length + (path[length] == '/');
    }
}

/* Where engines put things of their own, and what their mounts lie on. */
static int take_in_some(int root) {
    char *line = NULL, point[PATH_MAX];
    size_t room = 0;
    int result = take_in_along(root, "etc") || take_in_along(root, "run") ? -1 : 0;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts) return failed("/proc/self/mountinfo");
    while (!result && getline(&line, &room, mounts) > 0)
        if (sscanf(line, "%*s %*s %*s %*s /%4095s", point) == 1) result = take_in_along(root, point);
    free(line);
    fclose(mounts);
    return result;
}

/* An overlay on which a name is what it is, whatever other names the same file has. */
static bool on_overlay(int root) {
    struct statfs info;
    char *line = NULL;
    size_t room = 0;
    bool plain = !fstatfs(root, &info) && info.f_type == OVERLAYFS_SUPER_MAGIC;
    FILE *mounts = plain ? fopen("/proc/self/mounts", "re") : NULL;
    while (mounts && getline(&line, &room, mounts) > 0)
        if (strstr(line, " / overlay ") && strstr(line, "index=on")) plain = false;
    free(line);
    if (mounts) fclose(mounts);
    return plain && mounts;
}

int make_index(int root, bool trees) {
    struct look seen;
    struct statx all;
    if (statx(root, "", AT_EMPTY_PATH, STATX_MNT_ID, &all)) return failed("statx");
    if (!(all.stx_mask & STATX_MNT_ID)) return errno = ENOSYS, failed("statx of mounts");
    root_mount = all.stx_mnt_id;
    begun = clock_of(CLOCK_REALTIME_COARSE);
    ahead = lead();
    if (look(root, "", &seen)) return failed("/");
    append(&index_of_box, &seen.found, "");
    index_of_box.layered = trees && on_overlay(root);
    complete = true;
    int result = index_of_box.layered ? take_in_some(root) : take_in_all(0, root);
    complete = false;
    let_time_pass(begun > seen.changed ? begun : seen.changed);
    return result;
}

/* Wait until what is changed from now on can be told from what was changed up to then. */
void let_time_pass(int64_t then) {
    const struct timespec moment = {0, 1000000};
    while (clock_of(CLOCK_REALTIME_COARSE) <= then && !nanosleep(&moment, NULL)) {}
}
