/* A process made of the picture of another one, in the place of a program that was started in this
   box for it: so it has this box's namespaces, limits and filter, and the right file in /proc/PID/exe.

   All that the program had in memory goes, but for what the kernel itself put there, which moves to
   where the picture wants it. Then regions, pages, signal handlers, files and registers are set, and
   the process goes on with the request that it was waiting for. */

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
#define ROOM (16 * PAGE)           /* of ours in the process: its first page is a system call */
#define AT_ONCE (64 * PAGE)
#define MOST 1000000               /* regions or files, more than any process may have */
#define UNREGISTERED 1
#define MOVED (MREMAP_MAYMOVE | MREMAP_FIXED)

struct planted {
    struct traced p;
    struct picture picture;
    struct regions now, then;
    struct opened *files;
    char *floats;
    uint64_t ours;                 /* where our room is, and behind it what is parked */
};

static int take_in(int fd, void *to, size_t length) {
    for (char *at = to; length;) {
        ssize_t got = read(fd, at, length);
        if (got <= 0) return errno = got ? errno : EINVAL, failed("the picture");
        at += got;
        length -= (size_t)got;
    }
    return 0;
}

static int tell(struct traced *p, uint64_t address, const void *bytes, size_t length) {
    ssize_t put = pwrite(p->memory, bytes, length, (off_t)address);
    if (put == (ssize_t)length) return 0;
    return errno = put < 0 ? errno : EIO, failed("memory at %lx", address);
}

static int read_picture(struct planted *it, int fd) {
    struct picture *picture = &it->picture;
    if (lseek(fd, 0, SEEK_SET) || take_in(fd, picture, sizeof *picture)) return -1;
    if (strcmp(picture->kind, "intercode-1") || picture->floats > LONGEST_FLOATS
        || picture->regions > MOST || picture->files > MOST)
        return errno = EINVAL, failed("this is no picture of a process");
    it->floats = aligned_alloc(64, LONGEST_FLOATS);
    it->then.all = calloc(picture->regions + 1, sizeof *it->then.all);
    it->files = calloc(picture->files + 1, sizeof *it->files);
    if (!it->floats || !it->then.all || !it->files) abort();
    it->then.count = picture->regions;
    if (take_in(fd, it->floats, picture->floats)) return -1;
    if (take_in(fd, it->then.all, picture->regions * sizeof *it->then.all)) return -1;
    return take_in(fd, it->files, picture->files * sizeof *it->files);
}

/* ------------------------------------------------------------------ making room */
static int find_gate(struct planted *it) {
    static unsigned char code[16 * PAGE];
    const struct region *vdso = find_region(&it->now, "[vdso]");
    if (!vdso || vdso->to - vdso->from > sizeof code) return errno = ENOSYS, failed("vdso");
    size_t length = vdso->to - vdso->from;
    if (pread(it->p.memory, code, length, (off_t)vdso->from) != (ssize_t)length)
        return failed("vdso");
    for (size_t i = 0; i + 1 < length; i++)
        if (code[i] == 0x0f && code[i + 1] == 0x05) {
            it->p.gate = vdso->from + i;
            return 0;
        }
    return errno = ENOSYS, failed("no system call in the vdso");
}

/* How many bytes the kernel's own regions have; 0 where they are not those of the picture. */
static uint64_t special(const struct planted *it) {
    uint64_t length = 0, wanted = 0;
    for (size_t i = 0; i < it->now.count; i++) {
        const struct region *r = &it->now.all[i];
        if (r->content != SPECIAL) continue;
        const struct region *then = find_region(&it->then, r->path);
        if (!then || then->to - then->from != r->to - r->from) return 0;
        length += r->to - r->from;
    }
    for (size_t i = 0; i < it->then.count; i++)
        if (it->then.all[i].content == SPECIAL) wanted += it->then.all[i].to - it->then.all[i].from;
    return length == wanted ? length : 0;
}

static int make_room(struct planted *it) {
    static const unsigned char call[] = {0x0f, 0x05};
    struct traced *p = &it->p;
    uint64_t parked = special(it);
    long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (!parked) return errno = ENOSYS, failed("another kernel's process");
    it->ours = find_gap(&it->now, &it->then, ROOM + parked);
    if (!it->ours) return errno = ENOMEM, failed("no room");
    long got = made_to(p, SYS_mmap, (long)it->ours, ROOM, PROT_READ | PROT_EXEC, flags, -1, 0);
    if (got != (long)it->ours) return -1;
    if (tell(p, it->ours, call, sizeof call)) return -1;
    p->gate = it->ours;
    return 0;
}

/* Move the kernel's own regions aside, end all others, and put those where they are wanted. */
static int clear_out(struct planted *it) {
    struct traced *p = &it->p;
    uint64_t at = it->ours + ROOM;
    for (size_t i = 0; i < it->now.count; i++) {
        const struct region *r = &it->now.all[i];
        uint64_t length = r->to - r->from;
        if (r->content != SPECIAL) continue;
        if (made_to(p, SYS_mremap, (long)r->from, (long)length, (long)length, MOVED, (long)at, 0) < 0)
            return -1;
        at += length;
    }
    for (size_t i = 0; i < it->now.count; i++) {
        const struct region *r = &it->now.all[i];
        if (r->content != SPECIAL
            && made_to(p, SYS_munmap, (long)r->from, (long)(r->to - r->from), 0, 0, 0, 0) < 0)
            return -1;
    }
    at = it->ours + ROOM;
    for (size_t i = 0; i < it->now.count; i++) {
        const struct region *r = &it->now.all[i];
        uint64_t length = r->to - r->from;
        if (r->content != SPECIAL) continue;
        const struct region *then = find_region(&it->then, r->path);
        if (made_to(p, SYS_mremap, (long)at, (long)length, (long)length, MOVED, (long)then->from, 0) < 0)
            return -1;
        at += length;
    }
    return 0;
}

/* --------------------------------------------------------------- what was there */
static long open_there(struct planted *it, const char *path, int flags) {
    if (tell(&it->p, it->ours + PAGE, path, strlen(path) + 1)) return -1;
    long fd = made_to(&it->p, SYS_openat, AT_FDCWD, (long)(it->ours + PAGE), flags, 0, 0, 0);
    return fd < 0 ? failed("%s", path) : fd;
}

static int map_regions(struct planted *it) {
    struct traced *p = &it->p;
    for (size_t i = 0; i < it->then.count; i++) {
        const struct region *r = &it->then.all[i];
        long length = (long)(r->to - r->from), fd = -1;
        long flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE;
        if (r->content == SPECIAL) continue;
        if (r->content == OF_FILE) {
            if ((fd = open_there(it, r->path, O_RDONLY | O_CLOEXEC)) < 0) return -1;
        } else {
            flags |= MAP_ANONYMOUS | MAP_NORESERVE | (r->stack ? MAP_GROWSDOWN | MAP_STACK : 0);
        }
        long offset = fd < 0 ? 0 : (long)r->offset;
        if (made_to(p, SYS_mmap, (long)r->from, length, r->protection, flags, fd, offset) < 0)
            return failed("%s at %lx", r->path, r->from);
        if (fd >= 0 && made_to(p, SYS_close, fd, 0, 0, 0, 0, 0) < 0) return -1;
    }
    return 0;
}

static int fill(struct planted *it, int fd) {
    static char buffer[AT_ONCE];
    struct run run;
    for (;;) {
        if (take_in(fd, &run, sizeof run)) return -1;
        if (!run.length) return 0;
        if (run.length > sizeof buffer) return errno = EINVAL, failed("the picture");
        if (take_in(fd, buffer, run.length) || tell(&it->p, run.from, buffer, run.length)) return -1;
    }
}

static int set_bounds(struct planted *it) {
    struct prctl_mm_map map = {.exe_fd = (uint32_t)-1};
    memcpy(&map, it->picture.bounds, sizeof it->picture.bounds);
    if (tell(&it->p, it->ours + PAGE, &map, sizeof map)) return -1;
    return made_to(&it->p, SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, (long)(it->ours + PAGE), sizeof map,
                   0, 0) < 0 ? -1 : 0;
}

static int set_signals(struct planted *it) {
    const struct picture *picture = &it->picture;
    long room = (long)(it->ours + PAGE);
    for (int number = 1; number <= SIGNALS; number++) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        if (tell(&it->p, (uint64_t)room, &picture->actions[number - 1], sizeof(struct action))
            || made_to(&it->p, SYS_rt_sigaction, number, room, 0, 8, 0, 0) < 0)
            return -1;
    }
    if (tell(&it->p, (uint64_t)room, &picture->alternate, sizeof picture->alternate)
        || made_to(&it->p, SYS_sigaltstack, room, 0, 0, 0, 0, 0) < 0
        || made_to(&it->p, SYS_umask, (long)picture->file_mask, 0, 0, 0, 0, 0) < 0)
        return -1;
    if (!picture->rseq.address) return 0;
    return made_to(&it->p, SYS_rseq, (long)picture->rseq.address, picture->rseq.size, 0,
                   picture->rseq.signature, 0, 0) < 0 ? -1 : 0;
}

/* Close what the program had opened by itself, and open what the process was reading. */
static int set_files(struct planted *it, const struct json *standard) {
    char name[32];
    struct names names;
    snprintf(name, sizeof name, "/proc/%d/fd", it->p.inside);
    int fd = open(name, DIRECTORY);
    if (fd < 0 || names_in(fd, &names)) return failed("%s", name);
    close(fd);
    for (size_t i = 0; i < names.count; i++) {
        bool keep = false;
        for (const struct json *v = standard ? standard->first : NULL; v; v = v->next)
            keep |= v->number == atoi(names.name[i]);
        if (!keep) made_to(&it->p, SYS_close, atoi(names.name[i]), 0, 0, 0, 0, 0);
    }
    free_names(&names);
    for (uint64_t i = 0; i < it->picture.files; i++) {
        const struct opened *file = &it->files[i];
        long got = open_there(it, file->path, file->flags & ~(O_CREAT | O_EXCL | O_TRUNC));
        if (got < 0) return -1;
        if (got != file->number
            && (made_to(&it->p, SYS_dup3, got, file->number, file->flags & O_CLOEXEC, 0, 0, 0) < 0
                || made_to(&it->p, SYS_close, got, 0, 0, 0, 0, 0) < 0))
            return -1;
        if (file->position
            && made_to(&it->p, SYS_lseek, file->number, file->position, SEEK_SET, 0, 0, 0) < 0)
            return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------- the whole */
static int set_going(struct planted *it) {
    struct user_regs_struct registers = it->picture.registers;
    registers.rip -= 2;  /* it asks again for what it was waiting for */
    registers.rax = registers.orig_rax;
    registers.orig_rax = (unsigned long)-1;
    if (made_to(&it->p, SYS_munmap, (long)it->ours, ROOM, 0, 0, 0, 0) < 0) return -1;
    if (set_mask(&it->p, &it->picture.mask)) return -1;
    return set_floats(&it->p, it->floats, it->picture.floats) || set_registers(&it->p, &registers)
               ? -1 : 0;
}

static int become(struct planted *it, int picture, const struct json *standard) {
    struct rseq_place rseq;
    if (read_regions(it->p.inside, &it->now) || find_gate(it)) return -1;
    get_rseq(&it->p, &rseq);
    if (rseq.address
        && made_to(&it->p, SYS_rseq, (long)rseq.address, rseq.size, UNREGISTERED, rseq.signature, 0,
                   0) < 0)
        return -1;
    return make_room(it) || clear_out(it) || map_regions(it) || fill(it, picture) || set_bounds(it)
                   || set_signals(it) || set_files(it, standard) || set_going(it)
               ? -1 : 0;
}

int plant(pid_t pid, int inside, int picture, const struct json *standard) {
    struct planted it = {.p = {.memory = -1}};
    int result = read_picture(&it, picture);
    if (!result && !(result = halt(&it.p, pid, inside))) {
        result = become(&it, picture, standard);
        int code = errno;
        if (result) kill(pid, SIGKILL);
        let_run(&it.p);
        errno = code;
    }
    int code = errno;
    free(it.floats);
    free(it.files);
    free(it.then.all);
    free(it.now.all);
    errno = code;
    return result;
}

#else

int plant(pid_t pid, int inside, int picture, const struct json *standard) {
    (void)pid, (void)inside, (void)picture, (void)standard;
    return errno = ENOSYS, failed("moving a process to another box on this kind of machine");
}

#endif
