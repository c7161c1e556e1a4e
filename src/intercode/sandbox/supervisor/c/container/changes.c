/* Tells what an episode changed in a container: of what differs from the start, that which is not
   what it was. The same as changes.c finds in a layer. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static void row(struct rows *rows, const struct difference *d, const char *kind, const char *digest,
                const char *target) {
    struct facts facts = {d->now.found.mode, d->now.size, d->entry == NOWHERE};
    bool gone = !strcmp(kind, "gone");
    add_row(rows, d->path, strlen(d->path), kind, gone ? NULL : &facts, digest, target);
}

/* What a link says, now or before. */
static int link_text(int fd, char text[PATH_MAX]) {
    ssize_t length = fd < 0 ? -1 : readlinkat(fd, "", text, PATH_MAX - 1);
    int code = errno;
    if (fd >= 0) close(fd);
    text[length > 0 ? length : 0] = 0;
    errno = code;
    return length < 0 ? -1 : 0;
}

/* The size that a file had, or -1 where the image does not tell. */
static long long size_before(const char *path) {
    struct stat old;
    int fd = open_pristine(path, O_PATH), result = fd < 0 ? -1 : fstat(fd, &old);
    if (fd >= 0) close(fd);
    return result ? -1 : (long long)old.st_size;
}

static int file(struct rows *rows, const struct difference *d, bool digests) {
    const struct entry *was = d->entry == NOWHERE ? NULL : &index_of_box.entries[d->entry];
    char now[80] = "", then[80] = "";
    bool alike = was && was->mode == d->now.found.mode && size_before(d->path) == d->now.size;
    if ((alike || digests) && may_read(rows, d->now.size, now)
        && digest_of(open_unlocked(box.root, d->path, PLAIN), now))
        return -1;
    if (alike && may_read(rows, d->now.size, then) && digest_of(open_pristine(d->path, PLAIN), then))
        return -1;
    if (!alike || strcmp(now, then)) row(rows, d, "file", now, "");
    return 0;
}

static int symbolic_link(struct rows *rows, const struct difference *d) {
    char now[PATH_MAX], then[PATH_MAX] = "";
    bool was = d->entry != NOWHERE && S_ISLNK(index_of_box.entries[d->entry].mode);
    if (link_text(open_unlocked(box.root, d->path, O_PATH | O_NOFOLLOW), now)) return -1;
    if (was && link_text(open_pristine(d->path, O_PATH), then) && errno != ENOENT) return -1;
    if (!was || strcmp(now, then)) row(rows, d, "link", "", now);
    return 0;
}

static void subdirectory(struct rows *rows, const struct difference *d) {
    if (d->replaced || d->deep || d->now.found.mode != index_of_box.entries[d->entry].mode)
        row(rows, d, "dir", d->deep ? UNREAD : "", "");
}

static int told(struct rows *rows, const struct difference *d, bool digests) {
    mode_t mode = d->now.found.mode;
    if (d->how == GONE) return row(rows, d, "gone", "", ""), 0;
    if (S_ISDIR(mode)) return subdirectory(rows, d), 0;
    if (S_ISREG(mode)) return file(rows, d, digests);
    if (S_ISLNK(mode)) return symbolic_link(rows, d);
    row(rows, d, S_ISFIFO(mode) ? "fifo" : S_ISSOCK(mode) ? "socket" : "device", "", "");
    return 0;
}

/* What went, or became something else, between the look at all and the look at it. */
static int meanwhile(struct rows *rows, const struct difference *d) {
    switch (errno) {
    case ENOENT: case ENOTDIR: case EISDIR: case ELOOP: case EINVAL: case ENXIO: case EACCES:
        if (d->entry != NOWHERE) row(rows, d, "gone", "", "");
        return 0;
    default:
        return failed("%s", d->path);
    }
}

int write_differences(struct text *out, bool digests, bool paths_only) {
    struct differences all;
    struct rows rows;
    begin_rows(&rows);
    int result = scan(&all);
    for (size_t i = 0; !result && i < all.count; i++) {
        if (!*all.all[i].path) continue;  /* the root itself */
        size_t so_far = rows.count;
        if (!told(&rows, &all.all[i], digests)) continue;
        forget_rows(&rows, so_far);
        result = meanwhile(&rows, &all.all[i]);
    }
    lock_again();
    if (!result) write_rows(out, &rows, paths_only);
    int code = errno;
    forget_differences(&all);
    forget_rows(&rows, 0);
    free(rows.all);
    errno = code;
    return result;
}

/* The paths of all that differs in any way, parents first. */
int write_touched(struct text *out) {
    struct differences all;
    int result = scan(&all);
    lock_again();
    for (size_t i = 0; !result && i < all.count; i++) {
        if (i) put(out, ",", 1);
        put_path(out, all.all[i].path);
    }
    forget_differences(&all);
    return result;
}
