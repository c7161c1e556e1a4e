/* Another process of the box, halted and made to issue system calls: what moving it takes.

   Only for x86-64, whose registers are spelt out here; elsewhere it says that it cannot. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NT_PRSTATUS 1
#define NT_X86_XSTATE 0x202

static long trace(long what, pid_t pid, void *address, void *data) {
    return syscall(SYS_ptrace, what, (long)pid, address, data, 0L, key);
}

#ifdef __x86_64__

/* Wait for the process to halt, and pass over what it was to be told meanwhile. */
static int halted(struct traced *p) {
    int status;
    for (;;) {
        if (waitpid(p->pid, &status, __WALL) != p->pid) return failed("waitpid");
        if (WIFSTOPPED(status)) return WSTOPSIG(status);
        if (WIFEXITED(status) || WIFSIGNALED(status)) return errno = ESRCH, failed("it has ended");
    }
}

int halt(struct traced *p, pid_t pid, int inside) {
    char name[32];
    *p = (struct traced){.pid = pid, .inside = inside, .memory = -1};
    if (trace(PTRACE_SEIZE, pid, NULL, NULL)) return failed("ptrace");
    if (trace(PTRACE_INTERRUPT, pid, NULL, NULL) || halted(p) < 0) return -1;
    snprintf(name, sizeof name, "/proc/%d/mem", inside);
    p->memory = open(name, O_RDWR | O_CLOEXEC);
    if (p->memory < 0 || get_registers(p, &p->before)) {
        int code = errno;
        let_run(p);
        errno = code;
        return failed("%s", name);
    }
    return 0;
}

void let_run(struct traced *p) {
    if (p->memory >= 0) close(p->memory);
    p->memory = -1;
    trace(PTRACE_DETACH, p->pid, NULL, NULL);
}

int get_registers(struct traced *p, struct user_regs_struct *registers) {
    struct iovec all = {registers, sizeof *registers};
    return trace(PTRACE_GETREGSET, p->pid, (void *)NT_PRSTATUS, &all) ? failed("registers") : 0;
}

int set_registers(struct traced *p, const struct user_regs_struct *registers) {
    struct iovec all = {(void *)registers, sizeof *registers};
    return trace(PTRACE_SETREGSET, p->pid, (void *)NT_PRSTATUS, &all) ? failed("registers") : 0;
}

int get_floats(struct traced *p, void *to, size_t *length) {
    struct iovec all = {to, *length};
    if (trace(PTRACE_GETREGSET, p->pid, (void *)NT_X86_XSTATE, &all)) return failed("registers");
    *length = all.iov_len;
    return 0;
}

int set_floats(struct traced *p, const void *from, size_t length) {
    struct iovec all = {(void *)from, length};
    return trace(PTRACE_SETREGSET, p->pid, (void *)NT_X86_XSTATE, &all) ? failed("registers") : 0;
}

int get_mask(struct traced *p, uint64_t *mask) {
    return trace(PTRACE_GETSIGMASK, p->pid, (void *)sizeof *mask, mask) ? failed("signals") : 0;
}

int set_mask(struct traced *p, const uint64_t *mask) {
    return trace(PTRACE_SETSIGMASK, p->pid, (void *)sizeof *mask, (void *)mask) ? failed("signals")
                                                                                : 0;
}

/* Where its C library has told the kernel to keep the number of its processor; nothing where the
   kernel does not say. */
void get_rseq(struct traced *p, struct rseq_place *place) {
    memset(place, 0, sizeof *place);
    trace(PTRACE_GET_RSEQ_CONFIGURATION, p->pid, (void *)sizeof *place, place);
}

/* Have it issue a system call: `p->gate` is the address of such an instruction in its memory. */
long made_to(struct traced *p, long number, long a, long b, long c, long d, long e, long f) {
    struct user_regs_struct registers = p->before;
    registers.rip = p->gate;
    registers.rax = (unsigned long)number;
    registers.orig_rax = (unsigned long)-1;
    registers.rdi = (unsigned long)a;
    registers.rsi = (unsigned long)b;
    registers.rdx = (unsigned long)c;
    registers.r10 = (unsigned long)d;
    registers.r8 = (unsigned long)e;
    registers.r9 = (unsigned long)f;
    if (set_registers(p, &registers)) return -1;
    if (trace(PTRACE_SINGLESTEP, p->pid, NULL, NULL)) return failed("ptrace");
    int met = halted(p);
    if (met < 0) return -1;
    if (met != SIGTRAP) return errno = EINTR, failed("signal %d", met);
    if (get_registers(p, &registers)) return -1;
    long result = (long)registers.rax;
    if (result < 0 && result > -4096) return errno = (int)-result, failed("call %ld", number);
    return result;
}

#endif
