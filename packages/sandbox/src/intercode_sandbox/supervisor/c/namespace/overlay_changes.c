/* Lists what an episode changed, from the upper layers. The cost grows with the changes. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBDIRECTORY (DIRECTORY | O_NOFOLLOW)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define MAX_DEPTH 100  /* levels; deeper directories are reported as unread */
#define MAX_ATTEMPTS 5  /* a name that still changes then counts as deleted */

struct walk {
    struct rows rows;
    bool digests;
    char path[1 << 16];  /* current path, without the leading slash */
    size_t length;
};

/* The directories at one path: those of the upper layers, the topmost first, and the lower one. */
struct location { const int *uppers; size_t count; int lower; };

static int compare_entry(struct walk *w, const struct location *at, const char *name,
                         const struct stat *info,
                         const struct stat *old, int depth);
static int add_deleted_children(struct walk *w, int lower, const struct names *except, int depth);

static void add_change(struct walk *w, const char *kind, const struct stat *info, bool new,
                       const char *digest, const char *target) {
    struct metadata metadata = {info ? info->st_mode : 0, info ? (long long)info->st_size : 0, new};
    w->path[w->length] = 0;
    add_row(&w->rows, w->path, kind, info ? &metadata : NULL, digest, target);
}

/* Append a name to the path. Return the previous length, which restores the path. */
static size_t enter(struct walk *w, const char *name) {
    size_t before = w->length, length = strlen(name);
    bool slash = before > 0;
    if (before + slash + length + 1 < sizeof w->path) {
        if (slash) w->path[w->length++] = '/';
        memcpy(w->path + w->length, name, length);
        w->length += length;
    }
    return before;
}

static int hash_entry(struct walk *w, int fd, const char *name, const struct stat *info,
                      char hex[80]) {
    return hash_file(&w->rows, openat(fd, name, FILE_FLAGS), info->st_size, hex);
}

static int read_link(int fd, const char *name, char text[PATH_MAX]) {
    ssize_t length = readlinkat(fd, name, text, PATH_MAX - 1);
    text[length > 0 ? length : 0] = 0;
    return length < 0 ? -1 : 0;
}

static int add_deleted_tree(struct walk *w, int lower, const char *name, int depth) {
    if (depth >= MAX_DEPTH) return 0;
    int fd = openat(lower, name, SUBDIRECTORY);
    if (fd < 0) return -1;
    int result = add_deleted_children(w, fd, NULL, depth + 1);
    close(fd);
    return result;
}

static int add_deleted(struct walk *w, int lower, const char *name, const struct stat *old,
                       int depth) {
    add_change(w, "gone", NULL, false, "", "");
    return S_ISDIR(old->st_mode) ? add_deleted_tree(w, lower, name, depth) : 0;
}

/* Report everything in a lower directory as deleted, except some names. */
static int add_deleted_children(struct walk *w, int lower, const struct names *except, int depth) {
    struct names names;
    struct stat old;
    int result = list_names(lower, &names);
    for (size_t i = 0; !result && !w->rows.truncated && i < names.count; i++) {
        const char *name = names.name[i];
        if (except && contains_name(except, name)) continue;
        if (fstatat(lower, name, &old, AT_SYMLINK_NOFOLLOW)) continue;
        size_t before = enter(w, name);
        result = add_deleted(w, lower, name, &old, depth);
        w->length = before;
    }
    free_names(&names);
    return result;
}

/* Compare a file with that of the lower layers. One that is unread counts as changed. */
static int compare_file(struct walk *w, const struct location *at, const char *name,
                        const struct stat *info,
                        const struct stat *old) {
    char now[80] = "", old_text[80] = "";
    bool alike = old && old->st_mode == info->st_mode && old->st_size == info->st_size;
    if ((alike || w->digests) && hash_entry(w, at->uppers[0], name, info, now)) return -1;
    alike = alike && !is_unread(now);
    if (alike && hash_entry(w, at->lower, name, old, old_text)) return -1;
    if (!alike || strcmp(now, old_text)) add_change(w, "file", info, !old, now, "");
    return 0;
}

static int compare_link(struct walk *w, const struct location *at, const char *name,
                        const struct stat *info, const struct stat *old) {
    char now[PATH_MAX], old_text[PATH_MAX] = "";
    if (read_link(at->uppers[0], name, now)) return -1;
    if (old && S_ISLNK(old->st_mode) && read_link(at->lower, name, old_text)) return -1;
    if (!old || !S_ISLNK(old->st_mode) || strcmp(now, old_text))
        add_change(w, "link", info, !old, "", now);
    return 0;
}

/* Open the directories of a name in the topmost upper layer and in those that it does not hide. */
static int open_merged(const struct location *at, const char *name, struct location *inner,
                       bool *hides) {
    struct stat info;
    int *fds = calloc(at->count, sizeof *fds);
    inner->uppers = fds;
    inner->count = 0;
    if (!fds || (fds[0] = openat(at->uppers[0], name, SUBDIRECTORY)) < 0) return -1;
    inner->count = 1;
    *hides = is_opaque(fds[0]);
    for (size_t i = 1; i < at->count && !*hides; i++) {
        if (fstatat(at->uppers[i], name, &info, AT_SYMLINK_NOFOLLOW)) continue;
        if (!S_ISDIR(info.st_mode)) {
            *hides = true;
        } else {
            if ((fds[inner->count] = openat(at->uppers[i], name, SUBDIRECTORY)) < 0) return -1;
            *hides = is_opaque(fds[inner->count++]);
        }
    }
    return 0;
}

static int compare_directory(struct walk *w, const struct location *at, bool hides, int depth);

static int compare_subdirectory(struct walk *w, const struct location *at, const char *name,
                                const struct stat *info, const struct stat *old, int depth) {
    struct location inner = {.lower = -1};
    bool hides = false, existed = old && S_ISDIR(old->st_mode);
    if (depth >= MAX_DEPTH) {
        add_change(w, "dir", info, !old, UNREAD, "");
        return 0;
    }
    if (!existed || (old->st_mode & 07777) != (info->st_mode & 07777))
        add_change(w, "dir", info, !old, "", "");
    int result = open_merged(at, name, &inner, &hides);
    if (!result && existed && (inner.lower = openat(at->lower, name, SUBDIRECTORY)) < 0)
        result = -1;
    if (!result) result = compare_directory(w, &inner, hides, depth + 1);
    int code = errno;
    for (size_t i = 0; i < inner.count; i++) close(inner.uppers[i]);
    if (inner.lower >= 0) close(inner.lower);
    free((void *)inner.uppers);
    errno = code;
    return result;
}

static int compare_entry(struct walk *w, const struct location *at, const char *name,
                         const struct stat *info,
                         const struct stat *old, int depth) {
    mode_t mode = info->st_mode;
    if (S_ISCHR(mode) && info->st_rdev == 0)  /* a whiteout */
        return old ? add_deleted(w, at->lower, name, old, depth) : 0;
    if (S_ISDIR(mode)) return compare_subdirectory(w, at, name, info, old, depth);
    if (old && S_ISDIR(old->st_mode) && add_deleted_tree(w, at->lower, name, depth)) return -1;
    if (S_ISREG(mode)) return compare_file(w, at, name, info, old);
    if (S_ISLNK(mode)) return compare_link(w, at, name, info, old);
    add_change(w, S_ISFIFO(mode) ? "fifo" : S_ISSOCK(mode) ? "socket" : "device", info, !old, "",
               "");
    return 0;
}

/* Compare one name, and repeat if it is replaced during the comparison. */
static int compare_name(struct walk *w, const struct location *at, const char *name, int depth) {
    size_t rows_before = w->rows.count, before = enter(w, name);
    int result = 0;
    for (int attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
        struct stat info, old;
        bool existed = at->lower >= 0 && !fstatat(at->lower, name, &old, AT_SYMLINK_NOFOLLOW);
        result = fstatat(at->uppers[0], name, &info, AT_SYMLINK_NOFOLLOW);
        if (!result) result = compare_entry(w, at, name, &info, existed ? &old : NULL, depth);
        if (!result) break;
        if (errno != ENOENT && errno != ENOTDIR && errno != EISDIR && errno != ELOOP
            && errno != EINVAL && errno != ENXIO) {
            result = fail("%s", name);
            break;
        }
        take_back_rows(&w->rows, rows_before);
        result = 0;
    }
    w->length = before;
    return result;
}

/* `hides`: the lower directory does not show through. */
static int compare_directory(struct walk *w, const struct location *at, bool hides, int depth) {
    struct names *names = calloc(at->count, sizeof *names);
    int result = names ? 0 : -1;
    for (size_t i = 0; !result && i < at->count; i++) result = list_names(at->uppers[i], &names[i]);
    for (size_t i = 0; !result && i < at->count; i++) {
        struct location below = {at->uppers + i, at->count - i, at->lower};
        for (size_t n = 0; !result && !w->rows.truncated && n < names[i].count; n++) {
            bool seen = false;
            for (size_t above = 0; above < i; above++)
                seen |= contains_name(&names[above], names[i].name[n]);
            if (!seen) result = compare_name(w, &below, names[i].name[n], depth);
        }
    }
    if (!result && hides && at->lower >= 0) {
        struct names every = {0};
        for (size_t i = 0; i < at->count; i++) every.count += names[i].count;
        every.name = calloc(every.count + 1, sizeof *every.name);
        every.count = 0;
        for (size_t i = 0; i < at->count; i++)
            for (size_t n = 0; n < names[i].count; n++)
                every.name[every.count++] = names[i].name[n];
        sort_names(&every);
        result = add_deleted_children(w, at->lower, &every, depth);
        free(every.name);
    }
    for (size_t i = 0; names && i < at->count; i++) free_names(&names[i]);
    free(names);
    return result;
}

int write_changes(struct text *out, const struct layout *layout, bool digests, bool paths_only) {
    struct walk *w = calloc(1, sizeof *w);
    struct location top = {layout->uppers, layout->count, layout->lower};
    if (!w) return -1;
    w->digests = digests;
    begin_rows(&w->rows, out, paths_only, paths_only ? MAX_RECORDED_LISTING : MAX_LISTING);
    int result = compare_directory(w, &top, false, 0);
    end_rows(&w->rows);
    int code = errno;
    free(w);
    errno = code;
    return result;
}
