/* Writes a checkpoint of a process to a file: registers, memory, signal handlers and the files
   that it reads. The process continues undisturbed.

   A checkpoint holds no threads, sockets, pipes, timers or children, and no file that is open
   for writing. A process with such descriptors is refused. The descriptors in `given_fds` are
   left out, because the restored process receives new ones. */

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
#define BUFFER_SIZE (64 * PAGE)
#define SCRATCH_OFFSET 8192  /* results are stored this far below the stack pointer */
/* bits of a page map entry: present or swapped (proc_pid_pagemap(5)) */
#define PAGE_PRESENT (3UL << 62)
#define PAGE_FILE_BACKED (1UL << 61)

static int write_all(int fd, const void *bytes, size_t length) {
    for (const char *at = bytes; length;) {
        ssize_t written = write(fd, at, length);
        if (written <= 0) return fail("the checkpoint");
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

/* ---------------------------------------------------------------------- memory */
static int write_run(struct tracee *p, int out, uint64_t from, uint64_t to, bool strict) {
    static char buffer[BUFFER_SIZE];
    while (from < to) {
        size_t part = to - from < BUFFER_SIZE ? to - from : BUFFER_SIZE;
        ssize_t got = pread(p->memory_fd, buffer, part, (off_t)from);
        if (got <= 0) return strict ? fail("reading its memory") : 0;  /* past the end of a file */
        struct page_run page_run = {from, (uint64_t)got};
        if (write_all(out, &page_run, sizeof page_run) || write_all(out, buffer, (size_t)got))
            return -1;
        from += (uint64_t)got;
    }
    return 0;
}

/* Write the pages of a region that belong to the process alone, not those that it shares with a
   file. */
static int write_region(struct tracee *p, int out, int pagemap, const struct region *r) {
    uint64_t entries[512], start = 0;
    bool in_run = false;
    if (r->content == KERNEL_REGION) return 0;
    if (r->content == SHARED) return write_run(p, out, r->from, r->to, false);
    for (uint64_t at = r->from; at < r->to;) {
        uint64_t count = (r->to - at) / PAGE < 512 ? (r->to - at) / PAGE : 512;
        ssize_t got = pread(pagemap, entries, count * 8, (off_t)(at / PAGE * 8));
        if (got != (ssize_t)(count * 8)) return fail("pagemap");
        for (uint64_t i = 0; i < count; i++, at += PAGE) {
            bool is_private = (entries[i] & PAGE_PRESENT)
                && !(r->content == FILE_BACKED && entries[i] & PAGE_FILE_BACKED);
            if (is_private == in_run) continue;
            if (in_run && write_run(p, out, start, at, true)) return -1;
            in_run = is_private;
            start = at;
        }
    }
    return in_run ? write_run(p, out, start, r->to, true) : 0;
}

static int write_memory(struct tracee *p, int out, const struct regions *regions) {
    char name[32];
    struct page_run end = {0};
    int result = 0;
    snprintf(name, sizeof name, "/proc/%d/pagemap", p->inner_pid);
    int pagemap = open(name, O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return fail("%s", name);
    for (size_t i = 0; i < regions->count && !result; i++)
        result = write_region(p, out, pagemap, &regions->items[i]);
    int code = errno;
    close(pagemap);
    errno = code;
    return result ? result : write_all(out, &end, sizeof end);
}

/* ---------------------------------------------------------------- kernel state */
/* Read the bounds of code, data, heap, stack, arguments and environment, in the order of
   prctl_mm_map. */
static int read_memory_bounds(struct tracee *p, uint64_t bounds[11]) {
    static const int fields[11] = {26, 27, 45, 46, 47, 0, 28, 48, 49, 50, 51};
    char name[32], text[4096], *at;
    snprintf(name, sizeof name, "/proc/%d/stat", p->inner_pid);
    read_text(AT_FDCWD, name, text, sizeof text);
    if (!(at = strrchr(text, ')'))) return errno = EINVAL, fail("%s", name);
    at++;
    for (int field = 3; field <= 51 && *at; field++) {
        uint64_t value = strtoull(at + 1 + strspn(at + 1, "RSDTtZXIPKW"), NULL, 10);
        for (int i = 0; i < 11; i++)
            if (fields[i] == field) bounds[i] = value;
        at++;
        at += strcspn(at, " ");
    }
    long brk = remote_syscall(p, SYS_brk, 0, 0, 0, 0, 0, 0);
    if (brk < 0) return -1;
    bounds[5] = (uint64_t)brk;
    return 0;
}

static int read_signal_state(struct tracee *p, struct checkpoint *checkpoint) {
    long scratch = (long)((p->saved_registers.rsp - SCRATCH_OFFSET) & ~63UL);
    for (int number = 1; number <= SIGNALS; number++) {
        struct signal_action *signal_action = &checkpoint->actions[number - 1];
        if (remote_syscall(p, SYS_rt_sigaction, number, 0, scratch, 8, 0, 0) < 0) return -1;
        if (pread(p->memory_fd, signal_action, sizeof *signal_action,
                  scratch) != sizeof *signal_action)
            return fail("reading its memory");
    }
    if (remote_syscall(p, SYS_sigaltstack, 0, scratch, 0, 0, 0, 0) < 0) return -1;
    if (pread(p->memory_fd, &checkpoint->signal_stack, sizeof checkpoint->signal_stack,
              scratch) < 0)
        return fail("reading its memory");
    long mask = remote_syscall(p, SYS_umask, 0, 0, 0, 0, 0, 0);
    if (mask < 0 || remote_syscall(p, SYS_umask, mask, 0, 0, 0, 0, 0) < 0) return -1;
    checkpoint->umask_value = (uint64_t)mask;
    return get_signal_mask(p, &checkpoint->mask);
}

static int read_state(struct tracee *p, struct checkpoint *checkpoint, void *fpu_state) {
    unsigned char code[2] = {0};
    p->syscall_address = p->saved_registers.rip - 2;
    if (pread(p->memory_fd, code, 2, (off_t)p->syscall_address) != 2 || code[0] != 0x0f
        || code[1] != 0x05
        || (long)p->saved_registers.orig_rax < 0)
        return errno = EBUSY, fail("the process is not waiting in a system call");
    strcpy(checkpoint->magic, "intercode-1");
    checkpoint->registers = p->saved_registers;
    checkpoint->fpu_size = MAX_FPU_STATE;
    if (get_fpu_state(p, fpu_state, &checkpoint->fpu_size)) return -1;
    get_rseq(p, &checkpoint->rseq);
    if (read_signal_state(p, checkpoint) || read_memory_bounds(p, checkpoint->bounds)) return -1;
    return 0;
}

/* ----------------------------------------------------------------------- files */
static bool is_given(const struct json *given_fds, int number) {
    for (const struct json *v = given_fds ? given_fds->first : NULL; v; v = v->next)
        if (v->number == number) return true;
    return false;
}

/* Describe a file or directory that the process only reads. Refuse every other kind of
   descriptor. */
static int read_open_file(int inner_pid, int number, struct open_file *file) {
    char name[48], text[512];
    struct stat info;
    file->number = number;
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", inner_pid, number);
    ssize_t got = read_text(AT_FDCWD, name, text, sizeof text);
    char *flags = strstr(text, "flags:");
    if (got <= 0 || !flags || sscanf(text, "pos:%ld", &file->position) != 1)
        return errno = EIO, fail("%s", name);
    file->flags = (int)strtol(flags + 6, NULL, 8);
    snprintf(name, sizeof name, "/proc/%d/fd/%d", inner_pid, number);
    got = readlink(name, file->path, sizeof file->path - 1);
    file->path[got > 0 ? got : 0] = 0;
    if (*file->path != '/' || stat(name, &info) || strstr(file->path, " (deleted)"))
        return errno = EBUSY, fail("%s is open", *file->path ? file->path : name);
    bool reads = (file->flags & O_ACCMODE) == O_RDONLY;
    if (S_ISREG(info.st_mode) ? !reads : !S_ISDIR(info.st_mode) && !S_ISCHR(info.st_mode))
        return errno = EBUSY, fail("%s is open", file->path);
    return 0;
}

static int read_open_files(int inner_pid, const struct json *given_fds, struct open_file **files,
                           uint64_t *count) {
    char name[32];
    struct names names;
    int result = 0;
    snprintf(name, sizeof name, "/proc/%d/fd", inner_pid);
    int fd = open(name, DIRECTORY);
    if (fd < 0 || list_names(fd, &names)) return fail("%s", name);
    close(fd);
    *files = calloc(names.count + 1, sizeof **files);
    if (!*files) abort();
    for (size_t i = 0; i < names.count && !result; i++) {
        int number = atoi(names.name[i]);
        if (!is_given(given_fds, number))
            result = read_open_file(inner_pid, number, &(*files)[(*count)++]);
    }
    free_names(&names);
    return result;
}

/* ------------------------------------------------------------ whole checkpoint */
static int write_checkpoint(struct tracee *p, const struct json *given_fds, int out) {
    static _Alignas(64) char fpu_state[MAX_FPU_STATE];
    struct checkpoint checkpoint = {0};
    struct regions regions = {0};
    struct open_file *files = NULL;
    int result = -1;
    if (!read_state(p, &checkpoint, fpu_state) && !read_regions(p->inner_pid, &regions)
        && !read_open_files(p->inner_pid, given_fds, &files, &checkpoint.files)) {
        checkpoint.regions = regions.count;
        result = write_all(out, &checkpoint, sizeof checkpoint)
            || write_all(out, fpu_state, checkpoint.fpu_size)
                 || write_all(out, regions.items, regions.count * sizeof *regions.items)
                 || write_all(out, files, checkpoint.files * sizeof *files)
                 || write_memory(p, out, &regions) ? -1 : 0;
    }
    int code = errno;
    free(regions.items);
    free(files);
    errno = code;
    return result;
}

int create_checkpoint(pid_t pid, int inner_pid, const struct json *given_fds) {
    struct tracee p;
    int out = memfd_create("process", MFD_CLOEXEC);
    if (out < 0) return fail("memfd_create");
    int result = stop_tracee(&p, pid, inner_pid);
    if (!result) {
        result = write_checkpoint(&p, given_fds, out);
        int code = errno;
        set_registers(&p, &p.saved_registers);
        release_tracee(&p);
        errno = code;
    }
    if (!result) return out;
    int code = errno;
    close(out);
    errno = code;
    return -1;
}

#else

int create_checkpoint(pid_t pid, int inner_pid, const struct json *given_fds) {
    (void)pid, (void)inner_pid, (void)given_fds;
    return errno = ENOSYS, fail("checkpoints on this kind of machine");
}

#endif
