/* How much a container's own files take up of the file system that it shares with others: all that
   differs from the start, and what was removed but is still open or mapped. */

#define _GNU_SOURCE
#include "container.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512              /* bytes, as stat counts them */

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

static bool has_ended(const char *number) {
    char path[40], line[512], *mark;
    snprintf(path, sizeof path, "/proc/%.10s/stat", number);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    line[got > 0 ? got : 0] = 0;
    return !(mark = strrchr(line, ')')) || mark[2] == 'Z' || mark[2] == 'X';
}

static void add_open(struct usage *out, struct many *many, const char *number) {
    char path[40];
    struct names names;
    struct look info;
    snprintf(path, sizeof path, "/proc/%.10s/fd", number);
    int fd = open(path, DIRECTORY);
    if (fd < 0) {
        if (errno == EACCES && !has_ended(number)) out->unknown = true;
        return;
    }
    if (!names_in(fd, &names)) {
        for (size_t i = 0; i < names.count; i++)
            if (!look_behind(fd, names.name[i], &info) && !info.foreign && !info.links
                && S_ISREG(info.found.mode))
                add(many, info.inode, (long long)info.blocks * BLOCK, false);
    }
    free_names(&names);
    close(fd);
}

/* A file that was removed and is only mapped: no more than is mapped of it can be told. */
static void add_mapped(struct many *many, const char *number) {
    char path[40], *line = NULL;
    size_t room = 0;
    unsigned long from, to;
    unsigned long long inode;
    int at = 0;
    snprintf(path, sizeof path, "/proc/%.10s/maps", number);
    FILE *file = fopen(path, "re");
    if (!file) return;
    while (getline(&line, &room, file) > 0) {
        if (!strstr(line, " (deleted)\n")) continue;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %llu %n", &from, &to, &inode, &at) < 3) continue;
        const char *name = line + at;
        if (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/dev/", 5) || !strncmp(name, "/SYSV", 5))
            continue;
        add(many, inode, (long long)(to - from), true);
    }
    free(line);
    fclose(file);
}

static int add_removed(struct usage *out, struct many *many) {
    struct names names;
    int proc = open("/proc", DIRECTORY);
    if (proc < 0) return failed("/proc");
    int result = names_in(proc, &names);
    for (size_t i = 0; !result && i < names.count; i++) {
        const char *name = names.name[i];
        if (!isdigit((unsigned char)*name) || !strcmp(name, "1")) continue;
        add_open(out, many, name);
        add_mapped(many, name);
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
