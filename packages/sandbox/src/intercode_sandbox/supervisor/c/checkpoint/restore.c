/* Restores a checkpoint into a program that was just started in this sandbox, so that the process
   has this sandbox's namespaces, limits and filter, and the right file in /proc/PID/exe.

   All memory of the program is unmapped except the regions of the kernel, which move to their
   addresses in the checkpoint. Then regions, pages, signal handlers, files and registers are
   set, and the process repeats the system call in which the checkpoint was taken. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

#define PAGE 4096UL
/* scratch memory in the process; its first bytes are a syscall instruction */
#define SCRATCH_SIZE (16 * PAGE)
#define BUFFER_SIZE (64 * PAGE)
#define MAX_COUNT 1000000  /* regions or files, more than any process may have */
#define RSEQ_UNREGISTER 1
#define MREMAP_FLAGS (MREMAP_MAYMOVE | MREMAP_FIXED)

struct restore_state {
    struct tracee p;
    struct checkpoint checkpoint;
    struct regions current, target;
    struct open_file *files;
    char *fpu_state;
    uint64_t scratch;  /* start of the scratch memory; the kernel's regions are parked behind it */
};

static int read_all(int fd, void *to, size_t length) {
    for (char *at = to; length;) {
        ssize_t got = read(fd, at, length);
        if (got <= 0) return errno = got ? errno : EINVAL, fail("the checkpoint");
        at += got;
        length -= (size_t)got;
    }
    return 0;
}

static int write_memory(struct tracee *p, uint64_t address, const void *bytes, size_t length) {
    ssize_t append = pwrite(p->memory_fd, bytes, length, (off_t)address);
    if (append == (ssize_t)length) return 0;
    return errno = append < 0 ? errno : EIO, fail("memory at %lx", address);
}

static int read_checkpoint(struct restore_state *it, int fd) {
    struct checkpoint *checkpoint = &it->checkpoint;
    if (lseek(fd, 0, SEEK_SET) || read_all(fd, checkpoint, sizeof *checkpoint)) return -1;
    if (strcmp(checkpoint->magic, "intercode-1") || checkpoint->fpu_size > MAX_FPU_STATE
        || checkpoint->regions > MAX_COUNT || checkpoint->files > MAX_COUNT)
        return errno = EINVAL, fail("this is not a checkpoint of a process");
    it->fpu_state = aligned_alloc(64, MAX_FPU_STATE);
    it->target.items = calloc(checkpoint->regions + 1, sizeof *it->target.items);
    it->files = calloc(checkpoint->files + 1, sizeof *it->files);
    if (!it->fpu_state || !it->target.items || !it->files) abort();
    it->target.count = checkpoint->regions;
    if (read_all(fd, it->fpu_state, checkpoint->fpu_size)) return -1;
    if (read_all(fd, it->target.items, checkpoint->regions * sizeof *it->target.items)) return -1;
    return read_all(fd, it->files, checkpoint->files * sizeof *it->files);
}

/* -------------------------------------------------------------- scratch memory */
static int find_syscall(struct restore_state *it) {
    static unsigned char code[16 * PAGE];
    const struct region *vdso = find_region(&it->current, "[vdso]");
    if (!vdso || vdso->to - vdso->from > sizeof code) return errno = ENOSYS, fail("vdso");
    size_t length = vdso->to - vdso->from;
    if (pread(it->p.memory_fd, code, length, (off_t)vdso->from) != (ssize_t)length)
        return fail("vdso");
    for (size_t i = 0; i + 1 < length; i++)
        if (code[i] == 0x0f && code[i + 1] == 0x05) {
            it->p.syscall_address = vdso->from + i;
            return 0;
        }
    return errno = ENOSYS, fail("no system call in the vdso");
}

/* Return the total size of the kernel's regions, or 0 if they differ from those of the checkpoint.
   */
static uint64_t kernel_region_size(const struct restore_state *it) {
    uint64_t length = 0, wanted = 0;
    for (size_t i = 0; i < it->current.count; i++) {
        const struct region *r = &it->current.items[i];
        if (r->content != KERNEL_REGION) continue;
        const struct region *target = find_region(&it->target, r->path);
        if (!target || target->to - target->from != r->to - r->from) return 0;
        length += r->to - r->from;
    }
    for (size_t i = 0; i < it->target.count; i++)
        if (it->target.items[i].content == KERNEL_REGION)
            wanted += it->target.items[i].to - it->target.items[i].from;
    return length == wanted ? length : 0;
}

static int map_scratch(struct restore_state *it) {
    static const unsigned char call[] = {0x0f, 0x05};
    struct tracee *p = &it->p;
    uint64_t kernel_size = kernel_region_size(it);
    long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (!kernel_size) return errno = ENOSYS, fail("the checkpoint is of another kernel");
    it->scratch = find_free_range(&it->current, &it->target, SCRATCH_SIZE + kernel_size);
    if (!it->scratch) return errno = ENOMEM, fail("no free address range");
    long got = remote_syscall(p, SYS_mmap, (long)it->scratch, SCRATCH_SIZE, PROT_READ | PROT_EXEC,
                              flags, -1, 0);
    if (got != (long)it->scratch) return -1;
    if (write_memory(p, it->scratch, call, sizeof call)) return -1;
    p->syscall_address = it->scratch;
    return 0;
}

/* Park the kernel's regions, unmap all others, and move the kernel's regions to their target
   addresses. */
static int replace_regions(struct restore_state *it) {
    struct tracee *p = &it->p;
    uint64_t at = it->scratch + SCRATCH_SIZE;
    for (size_t i = 0; i < it->current.count; i++) {
        const struct region *r = &it->current.items[i];
        uint64_t length = r->to - r->from;
        if (r->content != KERNEL_REGION) continue;
        if (remote_syscall(p, SYS_mremap, (long)r->from, (long)length, (long)length, MREMAP_FLAGS,
                           (long)at, 0) < 0)
            return -1;
        at += length;
    }
    for (size_t i = 0; i < it->current.count; i++) {
        const struct region *r = &it->current.items[i];
        if (r->content != KERNEL_REGION
            && remote_syscall(p, SYS_munmap, (long)r->from, (long)(r->to - r->from), 0, 0, 0,
                              0) < 0)
            return -1;
    }
    at = it->scratch + SCRATCH_SIZE;
    for (size_t i = 0; i < it->current.count; i++) {
        const struct region *r = &it->current.items[i];
        uint64_t length = r->to - r->from;
        if (r->content != KERNEL_REGION) continue;
        const struct region *target = find_region(&it->target, r->path);
        if (remote_syscall(p, SYS_mremap, (long)at, (long)length, (long)length, MREMAP_FLAGS,
                           (long)target->from, 0) < 0)
            return -1;
        at += length;
    }
    return 0;
}

/* --------------------------------------------------- memory, signals and files */
static long remote_open(struct restore_state *it, const char *path, int flags) {
    if (write_memory(&it->p, it->scratch + PAGE, path, strlen(path) + 1)) return -1;
    long fd = remote_syscall(&it->p, SYS_openat, AT_FDCWD, (long)(it->scratch + PAGE), flags, 0, 0,
                             0);
    return fd < 0 ? fail("%s", path) : fd;
}

static int map_regions(struct restore_state *it) {
    struct tracee *p = &it->p;
    for (size_t i = 0; i < it->target.count; i++) {
        const struct region *r = &it->target.items[i];
        long length = (long)(r->to - r->from), fd = -1;
        long flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE;
        if (r->content == KERNEL_REGION) continue;
        if (r->content == FILE_BACKED) {
            if ((fd = remote_open(it, r->path, O_RDONLY | O_CLOEXEC)) < 0) return -1;
        } else {
            flags |= MAP_ANONYMOUS | MAP_NORESERVE | (r->stack ? MAP_GROWSDOWN | MAP_STACK : 0);
        }
        long offset = fd < 0 ? 0 : (long)r->offset;
        if (remote_syscall(p, SYS_mmap, (long)r->from, length, r->protection, flags, fd,
                           offset) < 0)
            return fail("%s at %lx", r->path, r->from);
        if (fd >= 0 && remote_syscall(p, SYS_close, fd, 0, 0, 0, 0, 0) < 0) return -1;
    }
    return 0;
}

static int fill_pages(struct restore_state *it, int fd) {
    static char buffer[BUFFER_SIZE];
    struct page_run page_run;
    for (;;) {
        if (read_all(fd, &page_run, sizeof page_run)) return -1;
        if (!page_run.length) return 0;
        if (page_run.length > sizeof buffer) return errno = EINVAL, fail("the checkpoint");
        if (read_all(fd, buffer, page_run.length)
            || write_memory(&it->p, page_run.from, buffer, page_run.length))
            return -1;
    }
}

static int set_memory_bounds(struct restore_state *it) {
    struct prctl_mm_map map = {.exe_fd = (uint32_t)-1};
    memcpy(&map, it->checkpoint.bounds, sizeof it->checkpoint.bounds);
    if (write_memory(&it->p, it->scratch + PAGE, &map, sizeof map)) return -1;
    return remote_syscall(&it->p, SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, (long)(it->scratch + PAGE),
                          sizeof map,
                          0, 0) < 0 ? -1 : 0;
}

static int restore_signals(struct restore_state *it) {
    const struct checkpoint *checkpoint = &it->checkpoint;
    long address = (long)(it->scratch + PAGE);
    for (int number = 1; number <= SIGNALS; number++) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        if (write_memory(&it->p, (uint64_t)address, &checkpoint->actions[number - 1],
                         sizeof(struct signal_action))
            || remote_syscall(&it->p, SYS_rt_sigaction, number, address, 0, 8, 0, 0) < 0)
            return -1;
    }
    if (write_memory(&it->p, (uint64_t)address, &checkpoint->signal_stack,
                     sizeof checkpoint->signal_stack)
        || remote_syscall(&it->p, SYS_sigaltstack, address, 0, 0, 0, 0, 0) < 0
        || remote_syscall(&it->p, SYS_umask, (long)checkpoint->umask_value, 0, 0, 0, 0, 0) < 0)
        return -1;
    if (!checkpoint->rseq.address) return 0;
    return remote_syscall(&it->p, SYS_rseq, (long)checkpoint->rseq.address, checkpoint->rseq.size,
                          0,
                          checkpoint->rseq.signature, 0, 0) < 0 ? -1 : 0;
}

/* Close the descriptors that the program opened, and open the files of the checkpoint. */
static int restore_files(struct restore_state *it, const struct json *given_fds) {
    char name[32];
    struct names names;
    snprintf(name, sizeof name, "/proc/%d/fd", it->p.inner_pid);
    int fd = open(name, DIRECTORY);
    if (fd < 0 || list_names(fd, &names)) return fail("%s", name);
    close(fd);
    for (size_t i = 0; i < names.count; i++) {
        bool keep = false;
        for (const struct json *v = given_fds ? given_fds->first : NULL; v; v = v->next)
            keep |= v->number == atoi(names.name[i]);
        if (!keep) remote_syscall(&it->p, SYS_close, atoi(names.name[i]), 0, 0, 0, 0, 0);
    }
    free_names(&names);
    for (uint64_t i = 0; i < it->checkpoint.files; i++) {
        const struct open_file *file = &it->files[i];
        long got = remote_open(it, file->path, file->flags & ~(O_CREAT | O_EXCL | O_TRUNC));
        if (got < 0) return -1;
        if (got != file->number
            && (remote_syscall(&it->p, SYS_dup3, got, file->number, file->flags & O_CLOEXEC, 0, 0,
                               0) < 0
                || remote_syscall(&it->p, SYS_close, got, 0, 0, 0, 0, 0) < 0))
            return -1;
        if (file->position
            && remote_syscall(&it->p, SYS_lseek, file->number, file->position, SEEK_SET, 0, 0,
                              0) < 0)
            return -1;
    }
    return 0;
}

/* --------------------------------------------------------------- whole restore */
static int resume(struct restore_state *it) {
    struct user_regs_struct registers = it->checkpoint.registers;
    registers.rip -= 2;  /* repeat the interrupted system call */
    registers.rax = registers.orig_rax;
    registers.orig_rax = (unsigned long)-1;
    if (remote_syscall(&it->p, SYS_munmap, (long)it->scratch, SCRATCH_SIZE, 0, 0, 0, 0) < 0)
        return -1;
    if (set_signal_mask(&it->p, &it->checkpoint.mask)) return -1;
    return set_fpu_state(&it->p, it->fpu_state, it->checkpoint.fpu_size)
        || set_registers(&it->p, &registers)
               ? -1 : 0;
}

static int restore_process(struct restore_state *it, int checkpoint, const struct json *given_fds) {
    struct rseq_area rseq;
    if (read_regions(it->p.inner_pid, &it->current) || find_syscall(it)) return -1;
    get_rseq(&it->p, &rseq);
    if (rseq.address
        && remote_syscall(&it->p, SYS_rseq, (long)rseq.address, rseq.size, RSEQ_UNREGISTER,
                          rseq.signature, 0,
                          0) < 0)
        return -1;
    return map_scratch(it) || replace_regions(it) || map_regions(it) || fill_pages(it, checkpoint)
        || set_memory_bounds(it)
                   || restore_signals(it) || restore_files(it, given_fds) || resume(it)
               ? -1 : 0;
}

int restore_checkpoint(pid_t pid, int inner_pid, int checkpoint, const struct json *given_fds) {
    struct restore_state it = {.p = {.memory_fd = -1}};
    int result = read_checkpoint(&it, checkpoint);
    if (!result && !(result = stop_tracee(&it.p, pid, inner_pid))) {
        result = restore_process(&it, checkpoint, given_fds);
        int code = errno;
        if (result) kill(pid, SIGKILL);
        release_tracee(&it.p);
        errno = code;
    }
    int code = errno;
    free(it.fpu_state);
    free(it.files);
    free(it.target.items);
    free(it.current.items);
    errno = code;
    return result;
}

#else

int restore_checkpoint(pid_t pid, int inner_pid, int checkpoint, const struct json *given_fds) {
    (void)pid, (void)inner_pid, (void)checkpoint, (void)given_fds;
    return errno = ENOSYS, fail("checkpoints on this kind of machine");
}

#endif
