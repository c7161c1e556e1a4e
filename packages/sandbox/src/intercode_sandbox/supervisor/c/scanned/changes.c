/* Lists what an episode changed in a container: the differences from the start in kind, content or
   mode. The result equals that of namespace/overlay_changes.c. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static void add_difference_row(struct rows *rows, const struct difference *d, const char *kind,
                               const char *digest,
                               const char *target) {
    struct metadata metadata = {d->info.entry.mode, d->info.size, d->entry == NO_ENTRY};
    bool gone = !strcmp(kind, "gone");
    add_row(rows, d->path, kind, gone ? NULL : &metadata, digest, target);
}

/* Read the target of a link, and close the descriptor. */
static int read_link(int fd, char text[PATH_MAX]) {
    ssize_t length = fd < 0 ? -1 : readlinkat(fd, "", text, PATH_MAX - 1);
    int code = errno;
    if (fd >= 0) close(fd);
    text[length > 0 ? length : 0] = 0;
    errno = code;
    return length < 0 ? -1 : 0;
}

/* Return the size that a file had in the image, or -1. */
static long long original_size(const char *path) {
    struct stat old;
    int fd = open_in_image(path, O_PATH), result = fd < 0 ? -1 : fstat(fd, &old);
    if (fd >= 0) close(fd);
    return result ? -1 : (long long)old.st_size;
}

static int compare_file(struct rows *rows, const struct difference *d, bool digests) {
    const struct entry *old = d->entry == NO_ENTRY ? NULL : &file_index.entries[d->entry];
    char now[80] = "", old_text[80] = "";
    bool alike = old && old->mode == d->info.entry.mode && original_size(d->path) == d->info.size;
    long long size = d->info.size;
    if ((alike || digests)
        && hash_file(rows, open_granted(sandbox.root, d->path, FILE_FLAGS), size, now))
        return -1;
    alike = alike && !is_unread(now);
    if (alike && hash_file(rows, open_in_image(d->path, FILE_FLAGS), size, old_text)) return -1;
    if (!alike || strcmp(now, old_text)) add_difference_row(rows, d, "file", now, "");
    return 0;
}

static int compare_link(struct rows *rows, const struct difference *d) {
    char now[PATH_MAX], old_text[PATH_MAX] = "";
    bool old = d->entry != NO_ENTRY && S_ISLNK(file_index.entries[d->entry].mode);
    if (read_link(open_granted(sandbox.root, d->path, O_PATH | O_NOFOLLOW), now)) return -1;
    if (old && read_link(open_in_image(d->path, O_PATH), old_text) && errno != ENOENT) return -1;
    if (!old || strcmp(now, old_text)) add_difference_row(rows, d, "link", "", now);
    return 0;
}

static void compare_directory(struct rows *rows, const struct difference *d) {
    if (d->replaced || d->too_deep || d->info.entry.mode != file_index.entries[d->entry].mode)
        add_difference_row(rows, d, "dir", d->too_deep ? UNREAD : "", "");
}

static int compare_difference(struct rows *rows, const struct difference *d, bool digests) {
    mode_t mode = d->info.entry.mode;
    if (d->kind == DELETED) return add_difference_row(rows, d, "gone", "", ""), 0;
    if (S_ISDIR(mode)) return compare_directory(rows, d), 0;
    if (S_ISREG(mode)) return compare_file(rows, d, digests);
    if (S_ISLNK(mode)) return compare_link(rows, d);
    add_difference_row(rows, d, S_ISFIFO(mode) ? "fifo" : S_ISSOCK(mode) ? "socket" : "device", "",
                       "");
    return 0;
}

/* Handle a path that was deleted or replaced between the scan and the comparison. */
static int handle_race(struct rows *rows, const struct difference *d) {
    switch (errno) {
    case ENOENT: case ENOTDIR: case EISDIR: case ELOOP: case EINVAL: case ENXIO: case EACCES:
        if (d->entry != NO_ENTRY) add_difference_row(rows, d, "gone", "", "");
        return 0;
    default:
        return fail("%s", d->path);
    }
}

/* Scan; if there are too many differences, truncate the listing after the first ones. */
static int scan_or_truncate(struct differences *out, struct rows *rows) {
    int result = scan(out, false);
    if (!result || errno != E2BIG) return result;
    rows->ends_truncated = true;
    clear_error();
    return 0;
}

int write_differences(struct text *out, bool digests, bool paths_only) {
    struct differences differences;
    struct rows rows;
    begin_rows(&rows, out, paths_only, paths_only ? MAX_RECORDED_LISTING : MAX_LISTING);
    int result = scan_or_truncate(&differences, &rows);
    for (size_t i = 0; !result && !rows.truncated && i < differences.count; i++) {
        if (!*differences.items[i].path) continue;  /* the root itself */
        if (is_outside_listing(differences.items[i].path)) continue;
        size_t rows_before = rows.count;
        if (!compare_difference(&rows, &differences.items[i], digests)) continue;
        take_back_rows(&rows, rows_before);
        result = handle_race(&rows, &differences.items[i]);
    }
    restore_modes();
    end_rows(&rows);
    int code = errno;
    free_differences(&differences);
    errno = code;
    return result;
}

/* Write the paths of all differences, parents first. */
int write_touched_paths(struct text *out) {
    struct differences differences;
    struct rows rows;
    begin_rows(&rows, out, true, MAX_LISTING);
    int result = scan_or_truncate(&differences, &rows);
    restore_modes();
    for (size_t i = 0; !result && i < differences.count; i++)
        if (!is_outside_listing(differences.items[i].path))
            add_row(&rows, differences.items[i].path, "", NULL, "", "");
    end_rows(&rows);
    free_differences(&differences);
    return result;
}
