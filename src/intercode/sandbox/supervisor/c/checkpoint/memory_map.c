/* What is where in a process's memory, by /proc/PID/maps. */

#define _GNU_SOURCE
#include "supervisor.h"

#ifdef __x86_64__
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOWEST 0x100000UL        /* addresses that no program uses by itself begin here */
#define HIGHEST 0x7fff00000000UL

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* What stands in a region, by its name: something of the process's own, a file's content, or what
   lies in memory that may be shared, and can only be read there. */
static enum content content_of(const char *path, bool shared) {
    if (!strncmp(path, "[v", 2)) return SPECIAL;
    if (shared) return SHARED;
    if (*path != '/') return OWN;
    if (ends_in(path, " (deleted)") || !strncmp(path, "/memfd:", 7)) return SHARED;
    return OF_FILE;
}

static int add(struct regions *regions, char *line) {
    struct region r = {0};
    char mode[8] = "";
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &r.from, &r.to, mode, &r.offset, &at) < 4)
        return errno = EINVAL, failed("maps");
    const char *path = at ? line + at : "";
    if (!strcmp(path, "[vsyscall]")) return 0;
    if (strlen(path) >= sizeof r.path) return errno = ENAMETOOLONG, failed("%s", path);
    strcpy(r.path, path);
    r.stack = !strcmp(path, "[stack]");
    r.content = content_of(path, mode[3] == 's');
    r.protection = (mode[0] == 'r') * PROT_READ | (mode[1] == 'w') * PROT_WRITE
                   | (mode[2] == 'x') * PROT_EXEC;
    if (mode[3] == 's' && mode[1] == 'w' && *path == '/' && r.content == SHARED
        && !ends_in(path, " (deleted)") && strncmp(path, "/memfd:", 7))
        return errno = EBUSY, failed("%s is mapped for writing", path);
    if (regions->count == regions->room) {
        regions->room = regions->room ? regions->room * 2 : 128;
        regions->all = realloc(regions->all, regions->room * sizeof r);
        if (!regions->all) abort();
    }
    regions->all[regions->count++] = r;
    return 0;
}

int read_regions(int inside, struct regions *regions) {
    char name[32], *line = NULL;
    size_t room = 0;
    int result = 0;
    memset(regions, 0, sizeof *regions);
    snprintf(name, sizeof name, "/proc/%d/maps", inside);
    FILE *file = fopen(name, "re");
    if (!file) return failed("%s", name);
    while (!result && getline(&line, &room, file) > 0) result = add(regions, line);
    if (!result && !regions->count) result = (errno = ESRCH, failed("%s", name));
    int code = errno;
    free(line);
    fclose(file);
    errno = code;
    return result;
}

const struct region *find_region(const struct regions *regions, const char *path) {
    for (size_t i = 0; i < regions->count; i++)
        if (!strcmp(regions->all[i].path, path)) return &regions->all[i];
    return NULL;
}

/* The end of the highest region that lies in the way of one; 0 where none does. */
static uint64_t in_the_way(const struct regions *regions, uint64_t from, uint64_t to) {
    uint64_t end = 0;
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *r = &regions->all[i];
        if (r->from < to && from < r->to && r->to > end) end = r->to;
    }
    return end;
}

/* An address from which on `length` bytes are free in both; 0 where there is none. */
uint64_t find_gap(const struct regions *a, const struct regions *b, uint64_t length) {
    uint64_t from = LOWEST;
    while (from + length < HIGHEST) {
        uint64_t one = in_the_way(a, from, from + length), two = in_the_way(b, from, from + length);
        if (!one && !two) return from;
        from = one > two ? one : two;
    }
    return 0;
}
#endif
