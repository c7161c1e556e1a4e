/* Scans a container for differences from the index of its files at the start. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define MAX_DEPTH 100  /* levels; deeper directories are reported as unread */
#define MAX_DIFFERENCES 2000000

struct walk { struct differences *out; char path[1 << 16]; size_t length; };

/* A directory, its entry in the index or NO_ENTRY, and whether a parent was replaced. */
struct location { int fd; uint32_t old_entry; bool under_replaced; int depth; };

static int scan_directory(struct walk *w, const struct location *at, bool same);

static size_t enter(struct walk *w, const char *name) {
    size_t before = w->length, length = strlen(name);
    if (before) w->path[w->length++] = '/';
    memcpy(w->path + w->length, name, length);
    w->length += length;
    w->path[w->length] = 0;
    return before;
}

static void leave(struct walk *w, size_t length) {
    w->length = length;
    w->path[length] = 0;
}

/* Return whether the list takes more memory than a supervisor may use for it. */
static bool is_too_long(const struct differences *list) {
    return list->count > MAX_DIFFERENCES || list->path_bytes > MAX_LISTING;
}

static struct difference *add_difference(struct walk *w, enum change_kind kind, uint32_t entry,
                                         const struct location *at) {
    struct differences *out = w->out;
    out->items = ensure_capacity(out->items, out->count, &out->capacity, sizeof *out->items);
    struct difference *added = &out->items[out->count++];
    *added = (struct difference){.kind = kind, .entry = entry, .parent = at->old_entry,
                                 .under_replaced = at->under_replaced};
    if (out->measures_only) return added;
    out->path_bytes += (long long)w->length;
    if (!(added->path = strndup(w->path, w->length))) abort();
    return added;
}

void free_differences(struct differences *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i].path);
    free(list->items);
    memset(list, 0, sizeof *list);
}

static int add_deleted_children(struct walk *w, uint32_t entry, int depth);

/* Report an entry of the index as deleted, with everything in it. */
static int add_deleted(struct walk *w, uint32_t entry, const struct location *at) {
    add_difference(w, DELETED, entry, at);
    return S_ISDIR(file_index.entries[entry].mode) ? add_deleted_children(w, entry, at->depth) : 0;
}

static int add_deleted_entry(struct walk *w, uint32_t entry, const struct location *at) {
    size_t length = enter(w, file_index.entries[entry].name);
    int result = add_deleted(w, entry, at);
    leave(w, length);
    return result;
}

static int add_deleted_children(struct walk *w, uint32_t entry, int depth) {
    if (file_index.entries[entry].immutable) return 0;
    if (index_directory(entry, -1, w->path)) return -1;
    struct child_range range = file_index.ranges[file_index.entries[entry].children];
    struct location inner = {.fd = -1, .old_entry = entry, .under_replaced = true,
                             .depth = depth + 1};
    int result = 0;
    for (uint32_t i = range.first; !result && i < range.first + range.count; i++)
        result = add_deleted_entry(w, i, &inner);
    if (is_too_long(w->out)) result = (errno = E2BIG, fail("too many changed files"));
    return result;
}

/* Open a directory, and grant access if it is denied. */
static int open_directory(struct walk *w, int fd, const char *name, const struct file_stat *now) {
    int inner = openat(fd, name, SUBDIRECTORY);
    if (inner < 0 && errno != EACCES) return -1;
    if (inner >= 0 && (now->entry.mode & 0500) == 0500) return inner;
    if (inner >= 0) close(inner);
    if (set_mode(fd, name, (now->entry.mode | 0700) & 07777)) return -1;
    record_mode(sandbox.root, w->path, now->entry.mode);
    return openat(fd, name, SUBDIRECTORY);
}

/* Stat a name, and grant access to its directory again if it was revoked during the scan. */
static int stat_granted(struct walk *w, int fd, const char *name, struct file_stat *now) {
    struct stat info;
    char *last = strrchr(w->path, '/');
    if (!stat_entry(fd, name, now)) return 0;
    if (errno != EACCES || fstat(fd, &info) || fchmod(fd, (info.st_mode | 0700) & 07777)) return -1;
    if (last) *last = 0;
    record_mode(sandbox.root, last ? w->path : "", info.st_mode);
    if (last) *last = '/';
    return stat_entry(fd, name, now);
}

/* Return whether an error means that a name was deleted or replaced during the scan. */
static bool is_race(int code) {
    return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EACCES;
}

static int scan_subdirectory(struct walk *w, const struct location *at, const char *name,
                             uint32_t old_entry,
                             const struct file_stat *now, size_t number) {
    struct location inner = {.old_entry = old_entry, .under_replaced = at->under_replaced,
                             .depth = at->depth + 1};
    const struct entry *old = old_entry == NO_ENTRY ? NULL : &file_index.entries[old_entry];
    if (!old || old->immutable || !S_ISDIR(old->mode)) {
        inner.under_replaced = true;
        inner.old_entry = NO_ENTRY;
    }
    if (inner.depth <= MAX_DEPTH) inner.fd = open_directory(w, at->fd, name, now);
    /* only root may change the mode of a directory of a shared tree, which was moved */
    bool is_foreign = sandbox.in_chroot && inner.fd < 0 && errno == EPERM;
    if (inner.depth > MAX_DEPTH || is_foreign) {
        if (number) w->out->items[number - 1].too_deep = true;
        w->out->incomplete = true;
        return 0;
    }
    if (inner.fd < 0) return -1;
    int result = scan_directory(w, &inner, old && old->fingerprint == now->entry.fingerprint);
    int code = errno;
    close(inner.fd);
    errno = code;
    return result;
}

/* Compare a name with its entry in the index; `old_entry` is NO_ENTRY for a new name. */
static int scan_entry(struct walk *w, const struct location *at, const char *name,
                      uint32_t old_entry) {
    const struct entry *old = old_entry == NO_ENTRY ? NULL : &file_index.entries[old_entry];
    struct file_stat now;
    size_t number = 0;
    if (stat_granted(w, at->fd, name, &now)) {
        if (!is_race(errno)) return fail("/%s", w->path);
        return old ? add_deleted(w, old_entry, at) : 0;
    }
    if (now.other_mount) return 0;
    bool is_directory = S_ISDIR(now.entry.mode);
    if (!old || old->fingerprint != now.entry.fingerprint) {
        struct difference *added = add_difference(w, old ? CHANGED : NEW, old_entry, at);
        added->info = now;
        added->replaced = !old || old->immutable || !S_ISDIR(old->mode) || !is_directory;
        number = w->out->count;
        if (old && S_ISDIR(old->mode) && !is_directory)
            return add_deleted_children(w, old_entry, at->depth);
    }
    if (!is_directory || (old && old->immutable && !number)) return 0;
    size_t count_before = w->out->count;
    if (!scan_subdirectory(w, at, name, old_entry, &now, number)) return 0;
    if (!is_race(errno)) return fail("/%s", w->path);
    /* deleted during the scan */
    while (w->out->count > count_before) free(w->out->items[--w->out->count].path);
    return 0;
}

static int scan_name(struct walk *w, const struct location *at, const char *name,
                     uint32_t old_entry) {
    size_t length = enter(w, name);
    int result = scan_entry(w, at, name, old_entry);
    leave(w, length);
    return result;
}

/* Merge the names on disk with those in the index. Both are sorted. */
static int scan_names(struct walk *w, const struct location *at, uint32_t first, uint32_t count) {
    struct names names;
    uint32_t n = 0;
    int result = list_names(at->fd, &names);
    for (size_t i = 0; !result && (i < names.count || n < count);) {
        const char *now = i < names.count ? names.name[i] : NULL;
        const char *old = n < count ? file_index.entries[first + n].name : NULL;
        int order = !now ? 1 : !old ? -1 : strcmp(now, old);
        if (order < 0) {
            result = scan_name(w, at, now, NO_ENTRY);
        } else if (order == 0) {
            result = scan_name(w, at, old, first + n);
        } else {
            result = add_deleted_entry(w, first + n, at);
        }
        i += order <= 0;
        n += order >= 0;
        if (is_too_long(w->out)) result = (errno = E2BIG, fail("too many changed files"));
    }
    free_names(&names);
    return result;
}

/* `same`: the fingerprint is unchanged, so no name was added or removed. */
static int scan_directory(struct walk *w, const struct location *at, bool same) {
    struct child_range range = {0};
    int result = 0;
    if (at->old_entry != NO_ENTRY) {
        if (same && file_index.covers_subtree && !file_index.entries[at->old_entry].always_visit)
            return 0;
        if (index_directory(at->old_entry, at->fd, w->path)) return -1;
        range = file_index.ranges[file_index.entries[at->old_entry].children];
    }
    if (!same) return scan_names(w, at, range.first, range.count);
    for (uint32_t i = range.first; !result && i < range.first + range.count; i++)
        result = scan_name(w, at, file_index.entries[i].name, i);
    return result;
}

/* Report all differences, parents before their entries. Callers end with `restore_modes`. Fails
   with E2BIG if they are too many; `out` then holds the first ones. `measures_only`: leave out the
   paths. */
int scan(struct differences *out, bool measures_only) {
    struct walk *w = calloc(1, sizeof *w);
    struct file_stat now;
    struct location top = {.fd = sandbox.root, .old_entry = 0};
    memset(out, 0, sizeof *out);
    if (!w) return -1;
    w->out = out;
    out->measures_only = measures_only;
    int result = stat_entry(sandbox.root, "", &now) ? fail("/") : 0;
    bool same = !result && now.entry.fingerprint == file_index.entries[0].fingerprint;
    if (!result && !same) {
        const struct location above = {.old_entry = NO_ENTRY};
        struct difference *added = add_difference(w, CHANGED, 0, &above);
        added->info = now;
        if ((now.entry.mode & 0700) != 0700
            && !fchmod(sandbox.root, (now.entry.mode | 0700) & 07777))
            record_mode(sandbox.root, "", now.entry.mode);
    }
    if (!result) result = scan_directory(w, &top, same);
    int code = errno;
    free(w);
    if (result && code != E2BIG) free_differences(out);
    errno = code;
    return result;
}
