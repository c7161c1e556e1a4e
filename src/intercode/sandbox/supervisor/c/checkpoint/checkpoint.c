/* A process of the box as a file from which another box can make it anew: registers, memory, signal
   handlers, files that it reads. It goes on undisturbed.

   Not carried: threads, sockets and pipes of its own, files open for writing, timers, children. A
   process that has such descriptors is refused; `standard` are those that it is given anew. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

#define PAGE 4096UL
#define AT_ONCE (64 * PAGE)
#define BELOW_STACK 8192        /* how far below the stack there is room for answers */
#define IN_MEMORY (3UL << 62)   /* of a page: present, or swapped out (proc_pid_pagemap(5)) */
#define OF_A_FILE (1UL << 61)

static int put_out(int fd, const void *bytes, size_t length) {
    for (const char *at = bytes; length;) {
        ssize_t written = write(fd, at, length);
        if (written <= 0) return failed("the picture");
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

/* ------------------------------------------------------------------- memory */
static int put_run(struct traced *p, int out, uint64_t from, uint64_t to, bool strict) {
    static char buffer[AT_ONCE];
    while (from < to) {
        size_t part = to - from < AT_ONCE ? to - from : AT_ONCE;
        ssize_t got = pread(p->memory, buffer, part, (off_t)from);
        if (got <= 0) return strict ? failed("its memory") : 0;  /* past the end of a file */
        struct run run = {from, (uint64_t)got};
        if (put_out(out, &run, sizeof run) || put_out(out, buffer, (size_t)got)) return -1;
        from += (uint64_t)got;
    }
    return 0;
}

/* The pages of a region that are the process's own: those that it shares with a file are not. */
static int put_region(struct traced *p, int out, int pagemap, const struct region *r) {
    uint64_t entries[512], start = 0;
    bool running = false;
    if (r->content == SPECIAL) return 0;
    if (r->content == SHARED) return put_run(p, out, r->from, r->to, false);
    for (uint64_t at = r->from; at < r->to;) {
        uint64_t count = (r->to - at) / PAGE < 512 ? (r->to - at) / PAGE : 512;
        ssize_t got = pread(pagemap, entries, count * 8, (off_t)(at / PAGE * 8));
        if (got != (ssize_t)(count * 8)) return failed("pagemap");
        for (uint64_t i = 0; i < count; i++, at += PAGE) {
            bool own = (entries[i] & IN_MEMORY) && !(r->content == OF_FILE && entries[i] & OF_A_FILE);
            if (own == running) continue;
            if (running && put_run(p, out, start, at, true)) return -1;
            running = own;
            start = at;
        }
    }
    return running ? put_run(p, out, start, r->to, true) : 0;
}

static int put_memory(struct traced *p, int out, const struct regions *regions) {
    char name[32];
    struct run end = {0};
    int result = 0;
    snprintf(name, sizeof name, "/proc/%d/pagemap", p->inside);
    int pagemap = open(name, O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return failed("%s", name);
    for (size_t i = 0; i < regions->count && !result; i++)
        result = put_region(p, out, pagemap, &regions->all[i]);
    int code = errno;
    close(pagemap);
    errno = code;
    return result ? result : put_out(out, &end, sizeof end);
}

/* ---------------------------------------------------- what the kernel knows of it */
/* Bounds of code, data, heap, stack, arguments and environment, in the order of prctl_mm_map. */
static int get_bounds(struct traced *p, uint64_t bounds[11]) {
    static const int fields[11] = {26, 27, 45, 46, 47, 0, 28, 48, 49, 50, 51};
    char name[32], text[4096], *at;
    snprintf(name, sizeof name, "/proc/%d/stat", p->inside);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    if (!(at = strrchr(text, ')'))) return errno = EINVAL, failed("%s", name);
    at++;
    for (int field = 3; field <= 51 && *at; field++) {
        uint64_t value = strtoull(at + 1 + strspn(at + 1, "RSDTtZXIPKW"), NULL, 10);
        for (int i = 0; i < 11; i++)
            if (fields[i] == field) bounds[i] = value;
        at++;
        at += strcspn(at, " ");
    }
    long brk = made_to(p, SYS_brk, 0, 0, 0, 0, 0, 0);
    if (brk < 0) return -1;
    bounds[5] = (uint64_t)brk;
    return 0;
}

static int get_signals(struct traced *p, struct picture *picture) {
    long room = (long)((p->before.rsp - BELOW_STACK) & ~63UL);
    for (int number = 1; number <= SIGNALS; number++) {
        struct action *action = &picture->actions[number - 1];
        if (made_to(p, SYS_rt_sigaction, number, 0, room, 8, 0, 0) < 0) return -1;
        if (pread(p->memory, action, sizeof *action, room) != sizeof *action)
            return failed("its memory");
    }
    if (made_to(p, SYS_sigaltstack, 0, room, 0, 0, 0, 0) < 0) return -1;
    if (pread(p->memory, &picture->alternate, sizeof picture->alternate, room) < 0)
        return failed("its memory");
    long mask = made_to(p, SYS_umask, 0, 0, 0, 0, 0, 0);
    if (mask < 0 || made_to(p, SYS_umask, mask, 0, 0, 0, 0, 0) < 0) return -1;
    picture->file_mask = (uint64_t)mask;
    return get_mask(p, &picture->mask);
}

static int get_state(struct traced *p, struct picture *picture, void *floats) {
    unsigned char code[2] = {0};
    p->gate = p->before.rip - 2;
    if (pread(p->memory, code, 2, (off_t)p->gate) != 2 || code[0] != 0x0f || code[1] != 0x05
        || (long)p->before.orig_rax < 0)
        return errno = EBUSY, failed("it is not waiting for a request");
    strcpy(picture->kind, "intercode-1");
    picture->registers = p->before;
    picture->floats = LONGEST_FLOATS;
    if (get_floats(p, floats, &picture->floats)) return -1;
    get_rseq(p, &picture->rseq);
    if (get_signals(p, picture) || get_bounds(p, picture->bounds)) return -1;
    return 0;
}

/* -------------------------------------------------------------------- files */
static bool is_standard(const struct json *standard, int number) {
    for (const struct json *v = standard ? standard->first : NULL; v; v = v->next)
        if (v->number == number) return true;
    return false;
}

/* A file or directory that it only reads; anything else it shares with others. */
static int get_file(int inside, int number, struct opened *file) {
    char name[48], text[512];
    struct stat info;
    file->number = number;
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", inside, number);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    char *flags = strstr(text, "flags:");
    if (got <= 0 || !flags || sscanf(text, "pos:%ld", &file->position) != 1)
        return errno = EIO, failed("%s", name);
    file->flags = (int)strtol(flags + 6, NULL, 8);
    snprintf(name, sizeof name, "/proc/%d/fd/%d", inside, number);
    got = readlink(name, file->path, sizeof file->path - 1);
    file->path[got > 0 ? got : 0] = 0;
    if (*file->path != '/' || stat(name, &info) || strstr(file->path, " (deleted)"))
        return errno = EBUSY, failed("%s is open", *file->path ? file->path : name);
    bool reads = (file->flags & O_ACCMODE) == O_RDONLY;
    if (S_ISREG(info.st_mode) ? !reads : !S_ISDIR(info.st_mode) && !S_ISCHR(info.st_mode))
        return errno = EBUSY, failed("%s is open", file->path);
    return 0;
}

static int get_files(int inside, const struct json *standard, struct opened **files, uint64_t *count) {
    char name[32];
    struct names names;
    int result = 0;
    snprintf(name, sizeof name, "/proc/%d/fd", inside);
    int fd = open(name, DIRECTORY);
    if (fd < 0 || names_in(fd, &names)) return failed("%s", name);
    close(fd);
    *files = calloc(names.count + 1, sizeof **files);
    if (!*files) abort();
    for (size_t i = 0; i < names.count && !result; i++) {
        int number = atoi(names.name[i]);
        if (!is_standard(standard, number)) result = get_file(inside, number, &(*files)[(*count)++]);
    }
    free_names(&names);
    return result;
}

/* ------------------------------------------------------------------ the whole */
static int put_picture(struct traced *p, const struct json *standard, int out) {
    static _Alignas(64) char floats[LONGEST_FLOATS];
    struct picture picture = {0};
    struct regions regions = {0};
    struct opened *files = NULL;
    int result = -1;
    if (!get_state(p, &picture, floats) && !read_regions(p->inside, &regions)
        && !get_files(p->inside, standard, &files, &picture.files)) {
        picture.regions = regions.count;
        result = put_out(out, &picture, sizeof picture) || put_out(out, floats, picture.floats)
                 || put_out(out, regions.all, regions.count * sizeof *regions.all)
                 || put_out(out, files, picture.files * sizeof *files)
                 || put_memory(p, out, &regions) ? -1 : 0;
    }
    int code = errno;
    free(regions.all);
    free(files);
    errno = code;
    return result;
}

int take_picture(pid_t pid, int inside, const struct json *standard) {
    struct traced p;
    int out = memfd_create("process", MFD_CLOEXEC);
    if (out < 0) return failed("memfd_create");
    int result = halt(&p, pid, inside);
    if (!result) {
        result = put_picture(&p, standard, out);
        int code = errno;
        set_registers(&p, &p.before);
        let_run(&p);
        errno = code;
    }
    if (!result) return out;
    int code = errno;
    close(out);
    errno = code;
    return -1;
}

#else

int take_picture(pid_t pid, int inside, const struct json *standard) {
    (void)pid, (void)inside, (void)standard;
    return errno = ENOSYS, failed("moving a process to another box on this kind of machine");
}

#endif
