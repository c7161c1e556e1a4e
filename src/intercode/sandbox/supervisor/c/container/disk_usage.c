/* How much a container's own files take up of the file system that it shares with others: all that
   differs from the start, and what was removed but is still open or mapped. */

#define _GNU_SOURCE
#include "container/container.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512              /* bytes, as stat counts them */
#define EXITING 4              /* among a thread's flags, as the kernel tells them */

/* What several names, descriptors or mappings may stand for, and is to be counted once. */
struct shared { uint64_t inode; long long bytes; bool mapped; };

struct many { struct shared *all; size_t count, room; };

static void add(struct many *many, uint64_t inode, long long bytes, bool mapped) {
    if (many->count == many->room) {
        many->room = many->room ? many->room * 2 : 64;
        if (!(many->all = realloc(many->all, many->room * sizeof *many->all))) abort();
    }
    many->all[many->count++] = (struct shared){inode, bytes, mapped};
}

static int by_inode(const void *a, const void *b) {
    const struct shared *one = a, *two = b;
    if (one->inode != two->inode) return one->inode > two->inode ? 1 : -1;
    return one->mapped - two->mapped;
}

static void add_up(struct usage *out, struct many *many) {
    if (many->count) qsort(many->all, many->count, sizeof *many->all, by_inode);
    for (size_t i = 0; i < many->count; i++) {
        if (i && many->all[i].inode == many->all[i - 1].inode) continue;
        out->bytes += many->all[i].bytes;
        out->files++;
    }
    free(many->all);
}

/* Whether a thread has ended or is about to: it holds nothing then, or soon nothing, and until it has
   gone its directory in /proc may be closed to all. */
static bool is_ending(const char *thread) {
    char path[80], line[512], *mark, state;
    unsigned flags;
    snprintf(path, sizeof path, "%s/stat", thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    line[got > 0 ? got : 0] = 0;
    if (!(mark = strrchr(line, ')'))
        || sscanf(mark + 1, " %c %*s %*s %*s %*s %*s %u", &state, &flags) != 2)
        return true;
    return state == 'Z' || state == 'X' || flags & EXITING;
}

/* Whether descriptors are on their way through a socket: nobody can look at those. */
static bool carries(const char *thread, const char *socket) {
    char path[100], text[512], *mark;
    snprintf(path, sizeof path, "%s/fdinfo/%.10s", thread, socket);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    return (mark = strstr(text, "scm_fds:")) && atoi(mark + strlen("scm_fds:")) > 0;
}

static void add_open(struct usage *out, struct many *many, const char *thread) {
    char path[80];
    struct names names;
    struct look info;
    snprintf(path, sizeof path, "%s/fd", thread);
    int fd = open(path, DIRECTORY);
    if (fd < 0) {
        if (errno == EACCES && !is_ending(thread)) out->unknown = true;
        return;
    }
    if (!names_in(fd, &names)) {
        for (size_t i = 0; i < names.count; i++) {
            if (look_behind(fd, names.name[i], &info)) continue;
            if (S_ISSOCK(info.found.mode) && carries(thread, names.name[i])) out->unknown = true;
            if (!info.foreign && !info.links && S_ISREG(info.found.mode))
                add(many, info.inode, (long long)info.blocks * BLOCK, false);
        }
    }
    free_names(&names);
    close(fd);
}

/* A file that was removed and is only mapped: no more than is mapped of it can be told. False where
   the thread has no memory any more. */
static bool add_mapped(struct many *many, const char *thread) {
    char path[80], *line = NULL;
    size_t room = 0;
    unsigned long from, to;
    unsigned long long inode;
    int at = 0;
    bool any = false;
    snprintf(path, sizeof path, "%s/maps", thread);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    while (getline(&line, &room, file) > 0) {
        any = true;
        if (!strstr(line, " (deleted)\n")) continue;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %llu %n", &from, &to, &inode, &at) < 3) continue;
        const char *name = line + at;
        if (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/dev/", 5) || !strncmp(name, "/SYSV", 5))
            continue;
        add(many, inode, (long long)(to - from), true);
    }
    free(line);
    fclose(file);
    return any;
}

/* What a process holds: each thread may have descriptors of its own, and the first may have ended. */
static void add_held(struct usage *out, struct many *many, const char *number) {
    char path[80];
    struct names threads;
    bool mapped = false;
    snprintf(path, sizeof path, "/proc/%.10s/task", number);
    int task = open(path, DIRECTORY);
    if (task < 0) return;
    if (!names_in(task, &threads)) {
        for (size_t i = 0; i < threads.count; i++) {
            snprintf(path, sizeof path, "/proc/%.10s/task/%.10s", number, threads.name[i]);
            add_open(out, many, path);
            mapped = mapped || add_mapped(many, path);
        }
    }
    free_names(&threads);
    close(task);
}

static int add_removed(struct usage *out, struct many *many) {
    struct names names;
    int proc = open("/proc", DIRECTORY);
    if (proc < 0) return failed("/proc");
    int result = names_in(proc, &names);
    for (size_t i = 0; !result && i < names.count; i++) {
        const char *name = names.name[i];
        if (!isdigit((unsigned char)*name) || !strcmp(name, "1")) continue;
        add_held(out, many, name);
    }
    free_names(&names);
    close(proc);
    return result;
}

int measure(struct usage *out) {
    struct differences all;
    struct many many = {0};
    *out = (struct usage){0};
    int result = scan(&all);
    lock_again();
    for (size_t i = 0; !result && i < all.count; i++) {
        const struct difference *d = &all.all[i];
        long long bytes = (long long)d->now.blocks * BLOCK;
        if (d->how == GONE) continue;
        if (d->now.links > 1 && !S_ISDIR(d->now.found.mode)) {
            add(&many, d->now.inode, bytes, false);
        } else {
            out->bytes += bytes;
            out->files++;
        }
    }
    if (!result) {
        out->unknown = all.unread;
        result = add_removed(out, &many);
    }
    add_up(out, &many);
    forget_differences(&all);
    return result;
}
