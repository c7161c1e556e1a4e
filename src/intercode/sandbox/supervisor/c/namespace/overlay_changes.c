/* Reads what an episode changed out of the upper layers. See box/changes.py. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INNER (DIRECTORY | O_NOFOLLOW)
#define PLAIN (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define DEEPEST 100            /* levels; what lies deeper is not looked at, and its directory says so */
#define LOOKS 5                /* at a name that keeps changing; after that it counts as gone */

struct walk {
    struct rows rows;
    bool digests;
    char path[1 << 16];        /* of what is looked at, without the first slash */
    size_t length;
};

/* The directories at one place: those of the uppers, the topmost first, and of what lies below. */
struct place { const int *uppers; size_t count; int lower; };

static int entry(struct walk *w, const struct place *at, const char *name, const struct stat *info,
                 const struct stat *old, int depth);
static int gone_in(struct walk *w, int lower, const struct names *kept, int depth);

static void add(struct walk *w, const char *kind, const struct stat *info, bool new,
                const char *digest, const char *target) {
    struct facts facts = {info ? info->st_mode : 0, info ? (long long)info->st_size : 0, new};
    add_row(&w->rows, w->path, w->length, kind, info ? &facts : NULL, digest, target);
}

/* Go to a name below, and back by setting the length again. Gives the length before. */
static size_t go(struct walk *w, const char *name) {
    size_t before = w->length, length = strlen(name);
    bool slash = before > 0;
    if (before + slash + length < sizeof w->path) {
        if (slash) w->path[w->length++] = '/';
        memcpy(w->path + w->length, name, length);
        w->length += length;
    }
    return before;
}

/* SHA-256 of a file; its size alone once the budget is spent. */
static int digest(struct walk *w, int fd, const char *name, const struct stat *info, char hex[80]) {
    if (!may_read(&w->rows, info->st_size, hex)) return 0;
    return digest_of(openat(fd, name, PLAIN), hex);
}

static int link_text(int fd, const char *name, char text[PATH_MAX]) {
    ssize_t length = readlinkat(fd, name, text, PATH_MAX - 1);
    text[length > 0 ? length : 0] = 0;
    return length < 0 ? -1 : 0;
}

static int gone_below(struct walk *w, int lower, const char *name, int depth) {
    if (depth >= DEEPEST) return 0;
    int fd = openat(lower, name, INNER);
    if (fd < 0) return -1;
    int result = gone_in(w, fd, NULL, depth + 1);
    close(fd);
    return result;
}

static int gone(struct walk *w, int lower, const char *name, const struct stat *old, int depth) {
    add(w, "gone", NULL, false, "", "");
    return S_ISDIR(old->st_mode) ? gone_below(w, lower, name, depth) : 0;
}

/* Everything in a lower directory is gone, but for some names. */
static int gone_in(struct walk *w, int lower, const struct names *kept, int depth) {
    struct names names;
    struct stat old;
    int result = names_in(lower, &names);
    for (size_t i = 0; !result && i < names.count; i++) {
        const char *name = names.name[i];
        if (kept && has(kept, name)) continue;
        if (fstatat(lower, name, &old, AT_SYMLINK_NOFOLLOW)) continue;
        size_t before = go(w, name);
        result = gone(w, lower, name, &old, depth);
        w->length = before;
    }
    free_names(&names);
    return result;
}

/* A file that is not new: whether it is what it was. */
static int file(struct walk *w, const struct place *at, const char *name, const struct stat *info,
                const struct stat *old) {
    char now[80] = "", then[80] = "";
    bool alike = old && old->st_mode == info->st_mode && old->st_size == info->st_size;
    if ((alike || w->digests) && digest(w, at->uppers[0], name, info, now)) return -1;
    if (alike && digest(w, at->lower, name, old, then)) return -1;
    if (!alike || strcmp(now, then)) add(w, "file", info, !old, now, "");
    return 0;
}

static int symbolic_link(struct walk *w, const struct place *at, const char *name,
                         const struct stat *info, const struct stat *old) {
    char now[PATH_MAX], then[PATH_MAX] = "";
    if (link_text(at->uppers[0], name, now)) return -1;
    if (old && S_ISLNK(old->st_mode) && link_text(at->lower, name, then)) return -1;
    if (!old || !S_ISLNK(old->st_mode) || strcmp(now, then)) add(w, "link", info, !old, "", now);
    return 0;
}

/* The directories of a name in the topmost upper and in those below it that show through. */
static int open_merged(const struct place *at, const char *name, struct place *inner, bool *hides) {
    struct stat info;
    int *fds = calloc(at->count, sizeof *fds);
    inner->uppers = fds;
    inner->count = 0;
    if (!fds || (fds[0] = openat(at->uppers[0], name, INNER)) < 0) return -1;
    inner->count = 1;
    *hides = is_opaque(fds[0]);
    for (size_t i = 1; i < at->count && !*hides; i++) {
        if (fstatat(at->uppers[i], name, &info, AT_SYMLINK_NOFOLLOW)) continue;
        if (!S_ISDIR(info.st_mode)) {
            *hides = true;
        } else {
            if ((fds[inner->count] = openat(at->uppers[i], name, INNER)) < 0) return -1;
            *hides = is_opaque(fds[inner->count++]);
        }
    }
    return 0;
}

static int directory(struct walk *w, const struct place *at, bool hides, int depth);

static int subdirectory(struct walk *w, const struct place *at, const char *name,
                        const struct stat *info, const struct stat *old, int depth) {
    struct place inner = {.lower = -1};
    bool hides = false, was = old && S_ISDIR(old->st_mode);
    if (depth >= DEEPEST) {
        add(w, "dir", info, !old, UNREAD, "");
        return 0;
    }
    if (!was || (old->st_mode & 07777) != (info->st_mode & 07777)) add(w, "dir", info, !old, "", "");
    int result = open_merged(at, name, &inner, &hides);
    if (!result && was && (inner.lower = openat(at->lower, name, INNER)) < 0) result = -1;
    if (!result) result = directory(w, &inner, hides, depth + 1);
    int code = errno;
    for (size_t i = 0; i < inner.count; i++) close(inner.uppers[i]);
    if (inner.lower >= 0) close(inner.lower);
    free((void *)inner.uppers);
    errno = code;
    return result;
}

static int entry(struct walk *w, const struct place *at, const char *name, const struct stat *info,
                 const struct stat *old, int depth) {
    mode_t mode = info->st_mode;
    if (S_ISCHR(mode) && info->st_rdev == 0)  /* a whiteout */
        return old ? gone(w, at->lower, name, old, depth) : 0;
    if (S_ISDIR(mode)) return subdirectory(w, at, name, info, old, depth);
    if (old && S_ISDIR(old->st_mode) && gone_below(w, at->lower, name, depth)) return -1;
    if (S_ISREG(mode)) return file(w, at, name, info, old);
    if (S_ISLNK(mode)) return symbolic_link(w, at, name, info, old);
    add(w, S_ISFIFO(mode) ? "fifo" : S_ISSOCK(mode) ? "socket" : "device", info, !old, "", "");
    return 0;
}

/* One name, as often as it becomes something else while it is looked at. */
static int look(struct walk *w, const struct place *at, const char *name, int depth) {
    size_t so_far = w->rows.count, before = go(w, name);
    int result = 0;
    for (int looks = 0; looks < LOOKS; looks++) {
        struct stat info, old;
        bool was = at->lower >= 0 && !fstatat(at->lower, name, &old, AT_SYMLINK_NOFOLLOW);
        result = fstatat(at->uppers[0], name, &info, AT_SYMLINK_NOFOLLOW);
        if (!result) result = entry(w, at, name, &info, was ? &old : NULL, depth);
        if (!result) break;
        if (errno != ENOENT && errno != ENOTDIR && errno != EISDIR && errno != ELOOP
            && errno != EINVAL && errno != ENXIO) {
            result = failed("%s", name);
            break;
        }
        forget_rows(&w->rows, so_far);
        result = 0;
    }
    w->length = before;
    return result;
}

/* `hides`: what the lower directory holds does not show through. */
static int directory(struct walk *w, const struct place *at, bool hides, int depth) {
    struct names *names = calloc(at->count, sizeof *names);
    int result = names ? 0 : -1;
    for (size_t i = 0; !result && i < at->count; i++) result = names_in(at->uppers[i], &names[i]);
    for (size_t i = 0; !result && i < at->count; i++) {
        struct place below = {at->uppers + i, at->count - i, at->lower};
        for (size_t n = 0; !result && n < names[i].count; n++) {
            bool seen = false;
            for (size_t above = 0; above < i; above++) seen |= has(&names[above], names[i].name[n]);
            if (!seen) result = look(w, &below, names[i].name[n], depth);
        }
    }
    if (!result && hides && at->lower >= 0) {
        struct names all = {0};
        for (size_t i = 0; i < at->count; i++) all.count += names[i].count;
        all.name = calloc(all.count + 1, sizeof *all.name);
        all.count = 0;
        for (size_t i = 0; i < at->count; i++)
            for (size_t n = 0; n < names[i].count; n++) all.name[all.count++] = names[i].name[n];
        sort_names(&all);
        result = gone_in(w, at->lower, &all, depth);
        free(all.name);
    }
    for (size_t i = 0; names && i < at->count; i++) free_names(&names[i]);
    free(names);
    return result;
}

int write_changes(struct text *out, const struct layout *layout, bool digests, bool paths_only) {
    struct walk *w = calloc(1, sizeof *w);
    struct place top = {layout->uppers, layout->count, layout->lower};
    if (!w) return -1;
    w->digests = digests;
    begin_rows(&w->rows);
    int result = directory(w, &top, false, 0);
    if (!result) write_rows(out, &w->rows, paths_only);
    int code = errno;
    forget_rows(&w->rows, 0);
    free(w->rows.all);
    free(w);
    errno = code;
    return result;
}
