/* Reads the memory map of a process from /proc/PID/maps. */

#define _GNU_SOURCE
#include "supervisor.h"

#ifdef __x86_64__
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOWEST 0x100000UL  /* lowest address to use; programs use none below */
#define HIGHEST 0x7fff00000000UL

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* Classify a region by its name: private memory, the content of a file, a region of the kernel,
   or memory that may be shared, which a checkpoint can only copy. */
static enum content classify(const char *path, bool shared) {
    if (!strncmp(path, "[v", 2)) return KERNEL_REGION;
    if (shared) return SHARED;
    if (*path != '/') return ANONYMOUS;
    if (ends_with(path, " (deleted)") || !strncmp(path, "/memfd:", 7)) return SHARED;
    return FILE_BACKED;
}

static int add_region(struct regions *regions, char *line) {
    struct region r = {0};
    char mode[8] = "";
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &r.from, &r.to, mode, &r.offset, &at) < 4)
        return errno = EINVAL, fail("maps");
    const char *path = at ? line + at : "";
    if (!strcmp(path, "[vsyscall]")) return 0;
    if (strlen(path) >= sizeof r.path) return errno = ENAMETOOLONG, fail("%s", path);
    strcpy(r.path, path);
    r.stack = !strcmp(path, "[stack]");
    r.content = classify(path, mode[3] == 's');
    r.protection = (mode[0] == 'r') * PROT_READ | (mode[1] == 'w') * PROT_WRITE
                   | (mode[2] == 'x') * PROT_EXEC;
    if (mode[3] == 's' && mode[1] == 'w' && *path == '/' && r.content == SHARED
        && !ends_with(path, " (deleted)") && strncmp(path, "/memfd:", 7))
        return errno = EBUSY, fail("%s is mapped for writing", path);
    regions->items = ensure_capacity(regions->items, regions->count, &regions->capacity, sizeof r);
    regions->items[regions->count++] = r;
    return 0;
}

int read_regions(int inner_pid, struct regions *regions) {
    char name[32], *line = NULL;
    size_t capacity = 0;
    int result = 0;
    memset(regions, 0, sizeof *regions);
    snprintf(name, sizeof name, "/proc/%d/maps", inner_pid);
    FILE *file = fopen(name, "re");
    if (!file) return fail("%s", name);
    while (!result && getline(&line, &capacity, file) > 0) result = add_region(regions, line);
    if (!result && !regions->count) result = (errno = ESRCH, fail("%s", name));
    int code = errno;
    free(line);
    fclose(file);
    errno = code;
    return result;
}

const struct region *find_region(const struct regions *regions, const char *path) {
    for (size_t i = 0; i < regions->count; i++)
        if (!strcmp(regions->items[i].path, path)) return &regions->items[i];
    return NULL;
}

/* Return the end of the highest region that overlaps a range, or 0. */
static uint64_t overlap_end(const struct regions *regions, uint64_t from, uint64_t to) {
    uint64_t end = 0;
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *r = &regions->items[i];
        if (r->from < to && from < r->to && r->to > end) end = r->to;
    }
    return end;
}

/* Return the start of a range of `length` bytes that is free in both maps, or 0. */
uint64_t find_free_range(const struct regions *a, const struct regions *b, uint64_t length) {
    uint64_t from = LOWEST;
    while (from + length < HIGHEST) {
        uint64_t one = overlap_end(a, from, from + length),
            two = overlap_end(b, from, from + length);
        if (!one && !two) return from;
        from = one > two ? one : two;
    }
    return 0;
}
#endif
