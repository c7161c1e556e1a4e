/* Finds what differs in a container from what was there at the start. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INNER (DIRECTORY | O_NOFOLLOW)
#define DEEPEST 100            /* levels; what lies deeper is not looked at, and its directory says so */
#define MOST 2000000           /* differences */

struct walk { struct differences *out; char path[1 << 16]; size_t length; };

/* Where a directory is: its entry before, or NOWHERE, and whether something above it is replaced. */
struct place { int fd; uint32_t before; bool below; int depth; };

static int directory(struct walk *w, const struct place *at, bool same);

static size_t go(struct walk *w, const char *name) {
    size_t before = w->length, length = strlen(name);
    if (before) w->path[w->length++] = '/';
    memcpy(w->path + w->length, name, length);
    w->length += length;
    w->path[w->length] = 0;
    return before;
}

static void back(struct walk *w, size_t before) {
    w->length = before;
    w->path[before] = 0;
}

static struct difference *add(struct walk *w, enum how how, uint32_t entry, const struct place *at) {
    struct differences *out = w->out;
    if (out->count == out->room) {
        out->room = out->room ? out->room * 2 : 64;
        if (!(out->all = realloc(out->all, out->room * sizeof *out->all))) abort();
    }
    struct difference *made = &out->all[out->count++];
    *made = (struct difference){.how = how, .entry = entry, .parent = at->before, .below = at->below};
    if (!(made->path = strndup(w->path, w->length))) abort();
    return made;
}

void forget_differences(struct differences *list) {
    for (size_t i = 0; i < list->count; i++) free(list->all[i].path);
    free(list->all);
    memset(list, 0, sizeof *list);
}

static int all_gone(struct walk *w, uint32_t entry, int depth);

/* Something that was there is gone, with all that it held. */
static int gone(struct walk *w, uint32_t entry, const struct place *at) {
    add(w, GONE, entry, at);
    return S_ISDIR(index_of_box.entries[entry].mode) ? all_gone(w, entry, at->depth) : 0;
}

static int gone_at(struct walk *w, uint32_t entry, const struct place *at) {
    size_t before = go(w, index_of_box.entries[entry].name);
    int result = gone(w, entry, at);
    back(w, before);
    return result;
}

static int all_gone(struct walk *w, uint32_t entry, int depth) {
    if (take_in(entry, -1, w->path)) return -1;
    struct siblings group = index_of_box.groups[index_of_box.entries[entry].inner];
    struct place inner = {.fd = -1, .before = entry, .below = true, .depth = depth + 1};
    int result = 0;
    for (uint32_t i = group.first; !result && i < group.first + group.count; i++)
        result = gone_at(w, i, &inner);
    return result;
}

/* A directory to look into; its owner's right is taken where it is missing. */
static int opened(struct walk *w, int fd, const char *name, const struct look *now) {
    int inner = openat(fd, name, INNER);
    if (inner < 0 && errno != EACCES) return -1;
    if (inner >= 0 && (now->found.mode & 0500) == 0500) return inner;
    if (inner >= 0) close(inner);
    if (fchmodat(fd, name, (now->found.mode | 0700) & 07777, 0)) return -1;
    remember_lock(box.root, w->path, now->found.mode);
    return openat(fd, name, INNER);
}

/* As `look`, where the right was given up while the directory was looked into, too. */
static int look_again(struct walk *w, int fd, const char *name, struct look *now) {
    struct stat info;
    char *last = strrchr(w->path, '/');
    if (!look(fd, name, now)) return 0;
    if (errno != EACCES || fstat(fd, &info) || fchmod(fd, (info.st_mode | 0700) & 07777)) return -1;
    if (last) *last = 0;
    remember_lock(box.root, last ? w->path : "", info.st_mode);
    if (last) *last = '/';
    return look(fd, name, now);
}

/* What is said of a name that is gone, or another thing than it was a moment ago. */
static bool is_meanwhile(int code) {
    return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EACCES;
}

static int into(struct walk *w, const struct place *at, const char *name, uint32_t before,
                const struct look *now, size_t told) {
    struct place inner = {.before = before, .below = at->below, .depth = at->depth + 1};
    const struct entry *was = before == NOWHERE ? NULL : &index_of_box.entries[before];
    if (!was || !S_ISDIR(was->mode)) {
        inner.below = true;
        inner.before = NOWHERE;
    }
    if (inner.depth > DEEPEST) {
        if (told) w->out->all[told - 1].deep = true;
        w->out->unread = true;
        return 0;
    }
    if ((inner.fd = opened(w, at->fd, name, now)) < 0) return -1;
    int result = directory(w, &inner, was && was->mark == now->found.mark);
    int code = errno;
    close(inner.fd);
    errno = code;
    return result;
}

/* One name, and what it stood for: `before` is NOWHERE where it is new. */
static int one(struct walk *w, const struct place *at, const char *name, uint32_t before) {
    const struct entry *was = before == NOWHERE ? NULL : &index_of_box.entries[before];
    struct look now;
    size_t told = 0;
    if (look_again(w, at->fd, name, &now)) {
        if (!is_meanwhile(errno)) return failed("/%s", w->path);
        return was ? gone(w, before, at) : 0;
    }
    if (now.foreign) return 0;
    bool is_directory = S_ISDIR(now.found.mode);
    if (!was || was->mark != now.found.mark) {
        struct difference *made = add(w, was ? CHANGED : NEW, before, at);
        made->now = now;
        made->replaced = !was || !S_ISDIR(was->mode) || !is_directory;
        told = w->out->count;
        if (was && S_ISDIR(was->mode) && !is_directory) return all_gone(w, before, at->depth);
    }
    if (!is_directory) return 0;
    size_t so_far = w->out->count;
    if (!into(w, at, name, before, &now, told)) return 0;
    if (!is_meanwhile(errno)) return failed("/%s", w->path);
    while (w->out->count > so_far) free(w->out->all[--w->out->count].path);  /* gone meanwhile */
    return 0;
}

static int step(struct walk *w, const struct place *at, const char *name, uint32_t before) {
    size_t length = go(w, name);
    int result = one(w, at, name, before);
    back(w, length);
    return result;
}

/* Names now and before, side by side, as both are sorted. */
static int compared(struct walk *w, const struct place *at, uint32_t first, uint32_t count) {
    struct names names;
    uint32_t n = 0;
    int result = names_in(at->fd, &names);
    for (size_t i = 0; !result && (i < names.count || n < count);) {
        const char *now = i < names.count ? names.name[i] : NULL;
        const char *was = n < count ? index_of_box.entries[first + n].name : NULL;
        int order = !now ? 1 : !was ? -1 : strcmp(now, was);
        if (order < 0) {
            result = step(w, at, now, NOWHERE);
        } else if (order == 0) {
            result = step(w, at, was, first + n);
        } else {
            result = gone_at(w, first + n, at);
        }
        i += order <= 0;
        n += order >= 0;
        if (w->out->count > MOST) result = (errno = E2BIG, failed("too many files"));
    }
    free_names(&names);
    return result;
}

/* `same`: its mark is what it was, so no name came or went. */
static int directory(struct walk *w, const struct place *at, bool same) {
    struct siblings group = {0};
    int result = 0;
    if (at->before != NOWHERE) {
        if (same && index_of_box.layered && !index_of_box.entries[at->before].reopened) return 0;
        if (take_in(at->before, at->fd, w->path)) return -1;
        group = index_of_box.groups[index_of_box.entries[at->before].inner];
    }
    if (!same) return compared(w, at, group.first, group.count);
    for (uint32_t i = group.first; !result && i < group.first + group.count; i++)
        result = step(w, at, index_of_box.entries[i].name, i);
    return result;
}

/* Parents come before what they hold. Rights that had to be taken wait for `lock_again`. */
int scan(struct differences *out) {
    struct walk *w = calloc(1, sizeof *w);
    struct look now;
    struct place top = {.fd = box.root, .before = 0};
    memset(out, 0, sizeof *out);
    if (!w) return -1;
    w->out = out;
    int result = look(box.root, "", &now) ? failed("/") : 0;
    bool same = !result && now.found.mark == index_of_box.entries[0].mark;
    if (!result && !same) {
        const struct place above = {.before = NOWHERE};
        struct difference *made = add(w, CHANGED, 0, &above);
        made->now = now;
        if ((now.found.mode & 0700) != 0700 && !fchmod(box.root, (now.found.mode | 0700) & 07777))
            remember_lock(box.root, "", now.found.mode);
    }
    if (!result) result = directory(w, &top, same);
    int code = errno;
    free(w);
    if (result) forget_differences(out);
    errno = code;
    return result;
}
